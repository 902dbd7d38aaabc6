package openai

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	api "github.com/sashabaranov/go-openai"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// This package encodes requests itself. The library uses reflection several times:
// with twenty tools and a hundred messages, that took a third of the CPU time of an
// answer in all processes.

type bodyKey struct{}

// withBody makes retrying send this body instead of the library's.
func withBody(ctx context.Context, body []byte) context.Context {
	return context.WithValue(ctx, bodyKey{}, body)
}

func bodyOf(ctx context.Context) []byte {
	body, _ := ctx.Value(bodyKey{}).([]byte)
	return body
}

// encode is r, whose tools are encoded already, as the API wants it. The messages
// come last, so that a request begins with all of the conversation's request
// before it: a common beginning can come from a cache.
func encode(r *api.ChatCompletionRequest, tools []byte) []byte {
	size := len(tools) + 256
	for i := range r.Messages {
		size += len(r.Messages[i].Content) + len(r.Messages[i].Content)/16 + 64
	}
	b := append(make([]byte, 0, size), `{"model":`...)
	b = appendString(b, r.Model)
	if r.MaxTokens > 0 { //nolint:staticcheck // what most other servers know
		b = append(b, `,"max_tokens":`...)
		b = strconv.AppendInt(b, int64(r.MaxTokens), 10) //nolint:staticcheck // likewise
	}
	if r.MaxCompletionTokens > 0 {
		b = append(b, `,"max_completion_tokens":`...)
		b = strconv.AppendInt(b, int64(r.MaxCompletionTokens), 10)
	}
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	if len(tools) > 0 {
		b = append(b, `,"tools":`...)
		b = append(b, tools...)
	}
	b = append(b, `,"messages":[`...)
	for i := range r.Messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMessage(b, &r.Messages[i])
	}
	return append(b, `]}`...)
}

func appendMessage(b []byte, m *api.ChatCompletionMessage) []byte {
	b = append(b, `{"role":`...)
	b = appendString(b, m.Role)
	if m.Content != "" {
		b = append(b, `,"content":`...)
		b = appendString(b, m.Content)
	}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		if b = append(b, ','); i == 0 {
			b = append(b, `"tool_calls":[`...)
		}
		b = append(b, `{"id":`...)
		b = appendString(b, c.ID)
		b = append(b, `,"type":"function","function":{"name":`...)
		b = appendString(b, c.Function.Name)
		b = append(b, `,"arguments":`...)
		b = appendString(b, c.Function.Arguments)
		b = append(b, `}}`...)
	}
	if len(m.ToolCalls) > 0 {
		b = append(b, ']')
	}
	if m.ToolCallID != "" {
		b = append(b, `,"tool_call_id":`...)
		b = appendString(b, m.ToolCallID)
	}
	return append(b, '}')
}

// appendString appends text as a JSON string.
func appendString(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, utf8Text(text)) // fails only for invalid UTF-8
	return b
}

// maxToolsets is the size of the cache: each agent has one list of tools, which
// stays the same from step to step.
const maxToolsets = 8

// toolsets caches encoded lists of tools. It is safe for concurrent use.
type toolsets struct {
	mu   sync.Mutex
	kept []toolset // the most recently used first
}

type toolset struct {
	tools []*extensionv1.Tool
	json  []byte
}

// encoded returns a list of tools as JSON, or nil if it is empty.
func (t *toolsets) encoded(tools []*extensionv1.Tool) ([]byte, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, k := range t.kept {
		if slices.EqualFunc(k.tools, tools, sameTool) {
			copy(t.kept[1:], t.kept[:i])
			t.kept[0] = k
			return k.json, nil
		}
	}
	encoded, err := json.Marshal(functions(tools))
	if err != nil {
		return nil, err
	}
	t.kept = slices.Insert(t.kept, 0, toolset{tools, encoded})
	t.kept = t.kept[:min(len(t.kept), maxToolsets)]
	return encoded, nil
}

// sameTool reports whether both tools have the same encoding.
func sameTool(a, b *extensionv1.Tool) bool {
	return a.GetName() == b.GetName() && a.GetDescription() == b.GetDescription() &&
		string(a.GetSchema()) == string(b.GetSchema())
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
