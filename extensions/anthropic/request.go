package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// Limits of an answer in tokens, which the API requires, where the caller sets none.
const (
	maxTokens    = 8192
	maxTokensOld = 4096 // of the first models of version 3
)

// Texts for what the API does not accept empty or absent.
const (
	noText    = "(empty message)"
	beginning = "(the beginning of this conversation is left out)"
	goOn      = "(go on)"
)

// request is the body of a request. The fields are in the order in which the server
// caches them: tools, system prompt, messages.
type request struct {
	Model     string          `json:"model"`
	MaxTokens int64           `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	Tools     json.RawMessage `json:"tools,omitempty"`
	System    []block         `json:"system,omitempty"`
	Messages  []message       `json:"messages"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a part of a message: text, image, tool_use or tool_result.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	Source    *source         `json:"source,omitempty"`
	Cache     *cacheControl   `json:"cache_control,omitempty"`
}

// source is the picture of an image block.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"` // base64
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *cacheControl   `json:"cache_control,omitempty"`
}

// cacheControl asks the server to cache the request up to here. A request may do so four
// times.
type cacheControl struct {
	Type string `json:"type"`
}

var ephemeral = &cacheControl{"ephemeral"}

type encoder struct{ tools modelapi.Toolsets }

// encode returns the body of a request.
func (e *encoder) encode(r *sdk.CompleteRequest, model string, _ bool) ([]byte, error) {
	out := request{Model: model, MaxTokens: r.GetMaxTokens(), Stream: true}
	if out.MaxTokens <= 0 {
		out.MaxTokens = maxTokens
		if strings.HasPrefix(model, "claude-3-haiku") || strings.HasPrefix(model, "claude-3-opus") {
			out.MaxTokens = maxTokensOld
		}
	}
	out.add(modelapi.Dialog(r.GetMessages()))
	tools := r.GetTools()
	if len(tools) == 0 {
		tools = out.called()
	}
	var err error
	if out.Tools, err = e.tools.Encoded(tools, encodeTools); err != nil {
		return nil, err
	}
	return json.Marshal(&out)
}

// add adds messages so that the roles alternate, beginning and ending with the user's.
// Results come before the text of the same message.
func (r *request) add(dialog []modelapi.Message) {
	for _, m := range dialog {
		switch m.Role {
		case modelapi.RoleSystem:
			if strings.TrimSpace(m.Text) != "" {
				r.System = append(r.System, block{Type: "text", Text: m.Text})
			}
		case modelapi.RoleTool:
			r.say(modelapi.RoleUser, block{Type: "tool_result", ToolUseID: m.CallID, Content: m.Text})
		case modelapi.RoleAssistant:
			if len(r.Messages) == 0 {
				r.say(modelapi.RoleUser, block{Type: "text", Text: beginning})
			}
			if text := strings.TrimRight(m.Text, " \t\r\n"); strings.TrimSpace(text) != "" {
				r.say(m.Role, block{Type: "text", Text: text})
			}
			for _, c := range m.Calls {
				r.say(m.Role, block{Type: "tool_use", ID: c.ID, Name: c.Name, Input: input(c.Arguments)})
			}
		default:
			text := m.Text
			if strings.TrimSpace(text) == "" {
				text = noText
			}
			r.say(modelapi.RoleUser, block{Type: "text", Text: text})
			for _, image := range m.Images {
				r.say(modelapi.RoleUser, block{Type: "image", Source: &source{"base64", image.MIME, image.Data}})
			}
		}
	}
	if n := len(r.Messages); n == 0 || r.Messages[n-1].Role != modelapi.RoleUser {
		r.say(modelapi.RoleUser, block{Type: "text", Text: goOn})
	}
	r.cache()
}

func (r *request) say(role string, b block) {
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == role {
		r.Messages[n-1].Content = append(r.Messages[n-1].Content, b)
		return
	}
	r.Messages = append(r.Messages, message{Role: role, Content: []block{b}})
}

// cache asks for a cache of the system prompt and of the conversation up to the last two
// messages of the user: the last one for the next request, the one before because an
// earlier request has written it.
func (r *request) cache() {
	if n := len(r.System); n > 0 {
		r.System[n-1].Cache = ephemeral
	}
	left := 2
	for i := len(r.Messages) - 1; i >= 0 && left > 0; i-- {
		if m := &r.Messages[i]; m.Role == modelapi.RoleUser {
			m.Content[len(m.Content)-1].Cache = ephemeral
			left--
		}
	}
}

// called returns tools for the calls in the conversation: the API accepts calls only
// beside the tools that they call.
func (r *request) called() (tools []*extensionv1.Tool) {
	for _, m := range r.Messages {
		for _, b := range m.Content {
			known := func(t *extensionv1.Tool) bool { return t.GetName() == b.Name }
			if b.Type == "tool_use" && !slices.ContainsFunc(tools, known) {
				tools = append(tools, &extensionv1.Tool{Name: b.Name, Description: "Not available now."})
			}
		}
	}
	return tools
}

func encodeTools(tools []*extensionv1.Tool) ([]byte, error) {
	out := make([]tool, len(tools))
	for i, t := range tools {
		out[i] = tool{Name: t.GetName(), Description: t.GetDescription(), Schema: t.GetSchema()}
		if len(t.GetSchema()) == 0 {
			out[i].Schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
	}
	out[len(out)-1].Cache = ephemeral
	return json.Marshal(out)
}

// input returns JSON as an object, which the API requires.
func input(arguments string) json.RawMessage {
	text := strings.TrimSpace(arguments)
	if strings.HasPrefix(text, "{") {
		return json.RawMessage(text)
	}
	return json.RawMessage(`{"value":` + text + `}`)
}
