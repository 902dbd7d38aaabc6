package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	api "github.com/sashabaranov/go-openai"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// encoder encodes requests. The library's reflection took a third of the CPU time of an
// answer in all processes, with twenty tools and a hundred messages.
type encoder struct{ tools modelapi.Toolsets }

// encode returns r as the API wants it. The messages come last, so that a request
// begins with all of the conversation's request before it: a common beginning can come
// from a cache.
func (e *encoder) encode(r *sdk.CompleteRequest, model string, own bool) ([]byte, error) {
	tools, err := e.tools.Encoded(r.GetTools(), func(tools []*extensionv1.Tool) ([]byte, error) {
		return json.Marshal(functions(tools))
	})
	if err != nil {
		return nil, fmt.Errorf("encode tools: %w", err)
	}
	messages := modelapi.Dialog(r.GetMessages())
	size := len(tools) + 256
	for i := range messages {
		size += len(messages[i].Text) + len(messages[i].Text)/16 + 64
		for _, image := range messages[i].Images {
			size += base64.StdEncoding.EncodedLen(len(image.Data)) + 96
		}
	}
	b := append(make([]byte, 0, size), `{"model":`...)
	b = appendString(b, model)
	if n := r.GetMaxTokens(); n > 0 {
		field := `,"max_tokens":` // most other servers support only this
		if own || isReasoning(model) {
			field = `,"max_completion_tokens":`
		}
		b = strconv.AppendInt(append(b, field...), n, 10)
	}
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	if len(tools) > 0 {
		b = append(b, `,"tools":`...)
		b = append(b, tools...)
	}
	b = append(b, `,"messages":[`...)
	for i := range messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMessage(b, &messages[i])
	}
	return append(b, `]}`...), nil
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

func appendMessage(b []byte, m *modelapi.Message) []byte {
	b = append(b, `{"role":`...)
	b = appendString(b, m.Role)
	switch {
	case len(m.Images) > 0:
		b = appendParts(append(b, `,"content":`...), m)
	case m.Text != "":
		b = append(b, `,"content":`...)
		b = appendString(b, m.Text)
	}
	for i, c := range m.Calls {
		if b = append(b, ','); i == 0 {
			b = append(b, `"tool_calls":[`...)
		}
		b = append(b, `{"id":`...)
		b = appendString(b, c.ID)
		b = append(b, `,"type":"function","function":{"name":`...)
		b = appendString(b, c.Name)
		b = append(b, `,"arguments":`...)
		b = appendString(b, c.Arguments)
		b = append(b, `}}`...)
	}
	if len(m.Calls) > 0 {
		b = append(b, ']')
	}
	if m.CallID != "" {
		b = append(b, `,"tool_call_id":`...)
		b = appendString(b, m.CallID)
	}
	return append(b, '}')
}

// appendParts appends the text and the images of a message as parts.
func appendParts(b []byte, m *modelapi.Message) []byte {
	b = append(b, `[{"type":"text","text":`...)
	b = appendString(b, m.Text)
	for _, image := range m.Images {
		b = append(b, `},{"type":"image_url","image_url":{"url":"data:`...)
		b = append(append(b, image.MIME...), `;base64,`...)
		b = base64.StdEncoding.AppendEncode(b, image.Data)
		b = append(b, `"}`...)
	}
	return append(b, `}]`...)
}

// appendString appends valid text as a JSON string.
func appendString(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, modelapi.Text(text)) // fails only for invalid UTF-8
	return b
}

func functions(tools []*extensionv1.Tool) []api.Tool {
	out := make([]api.Tool, 0, len(tools))
	for _, t := range tools {
		f := &api.FunctionDefinition{Name: t.GetName(), Description: t.GetDescription(),
			Parameters: json.RawMessage(t.GetSchema())}
		if len(t.GetSchema()) == 0 {
			f.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		out = append(out, api.Tool{Type: api.ToolTypeFunction, Function: f})
	}
	return out
}
