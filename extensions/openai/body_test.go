package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	api "github.com/sashabaranov/go-openai"
	"pgregory.net/rapid"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/internal/seed"
)

// The encoding is equivalent to the library's.
func TestARequestIsEncodedLikeTheLibrary(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", "a\"b\\c", "line\nand\ttab\r\x00\x1f\x7f", "кот 🐈 \u2028 <b>&</b>", "not\xffvalid",
	}))
	some := text.Filter(func(s string) bool { return s != "" })
	seed.Check(t, func(t *rapid.T) {
		r := api.ChatCompletionRequest{Model: text.Draw(t, "model")}
		for range rapid.IntRange(0, 5).Draw(t, "messages") {
			m := api.ChatCompletionMessage{Role: text.Draw(t, "role"), Content: text.Draw(t, "content"),
				ToolCallID: text.Draw(t, "call")}
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				m.ToolCalls = append(m.ToolCalls, api.ToolCall{ID: some.Draw(t, "id"), Type: api.ToolTypeFunction,
					Function: api.FunctionCall{Name: some.Draw(t, "name"), Arguments: some.Draw(t, "arguments")}})
			}
			r.Messages = append(r.Messages, m)
		}
		if r.Messages == nil {
			r.Messages = []api.ChatCompletionMessage{}
		}
		switch n := rapid.IntRange(0, 99).Draw(t, "limit"); {
		case rapid.Bool().Draw(t, "new limit"):
			r.MaxCompletionTokens = n
		default:
			r.MaxTokens = n //nolint:staticcheck // most other servers support only this
		}
		var tools []*extensionv1.Tool
		for range rapid.IntRange(0, 3).Draw(t, "tools") {
			schema := rapid.SampledFrom([]string{"", `{"type": "object"}`, `{ "a": [1, "<x>"] }`}).Draw(t, "schema")
			tools = append(tools, &extensionv1.Tool{Name: text.Draw(t, "tool"),
				Description: text.Draw(t, "description"), Schema: []byte(schema)})
		}
		encoded, err := (&toolsets{}).encoded(tools)
		if err != nil {
			t.Fatal(err)
		}
		got := encode(&r, encoded)
		if len(tools) > 0 {
			r.Tools = functions(tools)
		}
		r.Stream, r.StreamOptions = true, &api.StreamOptions{IncludeUsage: true}
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decoded(t, want), decoded(t, got)); diff != "" {
			t.Errorf("the encoding differs from the library's (-want +got):\n%s", diff)
		}
	})
}

func decoded(t *rapid.T, raw []byte) (v any) {
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return v
}

func TestToolsAreEncodedOncePerChange(t *testing.T) {
	t.Parallel()
	list := func(description string) []*extensionv1.Tool {
		return []*extensionv1.Tool{{Name: "look", Description: description}, {Name: "listen"}}
	}
	var s toolsets
	say := func(description string) string {
		b, err := s.encoded(list(description))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), `"description":"`+description+`"`) {
			t.Errorf("the tools for %s are %s", description, b)
		}
		return string(b)
	}
	for i := range 3 * maxToolsets {
		first := say(strings.Repeat("x", i+1))
		if again := say(strings.Repeat("x", i+1)); again != first {
			t.Errorf("said again: %s, not %s", again, first)
		}
	}
	say("x")
	if len(s.kept) != maxToolsets {
		t.Errorf("%d lists are kept, want %d", len(s.kept), maxToolsets)
	}
	shorter, err := s.encoded(list("x")[:1])
	if err != nil || strings.Contains(string(shorter), "listen") {
		t.Errorf("a part of the tools is %s: %v", shorter, err)
	}
}
