package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"

	api "github.com/sashabaranov/go-openai"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// Texts for contents that the API does not accept empty.
const (
	noOutput = "(no output)"
	noText   = "(empty message)"
	noResult = "(this call has no result)"
)

// request converts r to a request that the API accepts: the result of every call
// follows it, no content is missing, and arguments are JSON.
func (p *provider) request(r *sdk.CompleteRequest, model string) api.ChatCompletionRequest {
	out := api.ChatCompletionRequest{Model: model, Messages: messages(r.GetMessages())}
	if n := int(r.GetMaxTokens()); n > 0 {
		if p.openAI || isReasoning(model) {
			out.MaxCompletionTokens = n
		} else {
			out.MaxTokens = n //nolint:staticcheck // most other servers support only this
		}
	}
	return out
}

// isReasoning reports whether the model accepts only max_completion_tokens.
func isReasoning(model string) bool {
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, prefix) {
			return true
		}
	}
	return false
}

func messages(in []*extensionv1.Message) []api.ChatCompletionMessage {
	out := make([]api.ChatCompletionMessage, 0, len(in))
	var open []string // calls of the last assistant message without a result
	settle := func() {
		for _, id := range open {
			out = append(out, api.ChatCompletionMessage{Role: api.ChatMessageRoleTool, ToolCallID: id,
				Content: noResult})
		}
		open = nil
	}
	for _, m := range in {
		if m.GetRole() == api.ChatMessageRoleTool {
			id := callID(m.GetCallId())
			for i, o := range open {
				if o == id {
					open = append(open[:i:i], open[i+1:]...)
					out = append(out, api.ChatCompletionMessage{
						Role: m.GetRole(), ToolCallID: id, Content: orElse(m.GetContent(), noOutput),
					})
					break
				}
			}
			continue // skip a result without its call
		}
		settle()
		switch c := (api.ChatCompletionMessage{Role: m.GetRole(), Content: utf8Text(m.GetContent())}); m.GetRole() {
		case api.ChatMessageRoleAssistant:
			for _, call := range m.GetCalls() {
				id := callID(firstOf(call.GetCallId(), call.GetProviderId()))
				open = append(open, id)
				c.ToolCalls = append(c.ToolCalls, api.ToolCall{ID: id, Type: api.ToolTypeFunction,
					Function: api.FunctionCall{Name: functionName(call.GetName()),
						Arguments: arguments(call.GetArguments())}})
			}
			if c.Content != "" || len(c.ToolCalls) > 0 {
				out = append(out, c)
			}
		case api.ChatMessageRoleSystem:
			if c.Content != "" {
				out = append(out, c)
			}
		default:
			c.Content = orElse(c.Content, noText)
			out = append(out, c)
		}
	}
	settle()
	return out
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func orElse(text, other string) string {
	if text = utf8Text(text); text == "" {
		return other
	}
	return text
}

func utf8Text(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// maxCallID is the longest id of a call that the API accepts.
const maxCallID = 40

// callID converts an id to one that the API accepts, always in the same way.
func callID(id string) string {
	if plain(id) && len(id) <= maxCallID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

func plain(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return s != ""
}

// functionName converts the name of a call, which may be any text, to one that
// the API accepts.
func functionName(name string) string {
	name = strings.ReplaceAll(name, "/", "__")
	if plain(name) && len(name) <= 64 {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		if b.Len() == 64 {
			break
		}
		if r < utf8.RuneSelf && plain(string(r)) {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	if b.Len() == 0 {
		return "unnamed"
	}
	return b.String()
}

// arguments converts the arguments of a call, which may be any text, to JSON:
// some servers parse them.
func arguments(a []byte) string {
	if json.Valid(a) {
		return string(a)
	}
	if len(strings.TrimSpace(string(a))) == 0 {
		return "{}"
	}
	b, err := json.Marshal(map[string]string{"not_json": utf8Text(string(a))})
	if err != nil {
		return "{}"
	}
	return string(b)
}
