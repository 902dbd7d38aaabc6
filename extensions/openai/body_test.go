package openai

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	api "github.com/sashabaranov/go-openai"
	"pgregory.net/rapid"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/internal/seed"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// The encoding is equivalent to the library's.
func TestARequestIsEncodedLikeTheLibrary(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", "a\"b\\c", "line\nand\ttab\r\x00\x1f\x7f", "кот 🐈 \u2028 <b>&</b>", "not\xffvalid",
	}))
	seed.Check(t, func(t *rapid.T) {
		r := &sdk.CompleteRequest{MaxTokens: int64(rapid.IntRange(0, 99).Draw(t, "limit"))}
		for range rapid.IntRange(0, 5).Draw(t, "messages") {
			m := &extensionv1.Message{Role: rapid.SampledFrom([]string{"user", "assistant", "system"}).Draw(t, "role"),
				Content: text.Draw(t, "content")}
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				m.Calls = append(m.Calls, &busv1.Call{CallId: text.Draw(t, "id"), Name: text.Draw(t, "name"),
					Arguments: []byte(text.Draw(t, "arguments"))})
			}
			r.Messages = append(r.Messages, m)
		}
		for range rapid.IntRange(0, 3).Draw(t, "tools") {
			schema := rapid.SampledFrom([]string{"", `{"type": "object"}`, `{ "a": [1, "<x>"] }`}).Draw(t, "schema")
			r.Tools = append(r.Tools, &extensionv1.Tool{Name: text.Draw(t, "tool"),
				Description: text.Draw(t, "description"), Schema: []byte(schema)})
		}
		own := rapid.Bool().Draw(t, "own")
		got, err := (&encoder{}).encode(r, "m", own)
		if err != nil {
			t.Fatal(err)
		}
		want := api.ChatCompletionRequest{Model: "m", Messages: []api.ChatCompletionMessage{}, Tools: functions(r.GetTools()),
			Stream: true, StreamOptions: &api.StreamOptions{IncludeUsage: true}}
		if own {
			want.MaxCompletionTokens = int(r.GetMaxTokens())
		} else {
			want.MaxTokens = int(r.GetMaxTokens()) //nolint:staticcheck // most other servers support only this
		}
		for _, m := range modelapi.Dialog(r.GetMessages()) {
			x := api.ChatCompletionMessage{Role: m.Role, Content: m.Text, ToolCallID: m.CallID}
			for _, c := range m.Calls {
				x.ToolCalls = append(x.ToolCalls, api.ToolCall{ID: c.ID, Type: api.ToolTypeFunction,
					Function: api.FunctionCall{Name: c.Name, Arguments: c.Arguments}})
			}
			want.Messages = append(want.Messages, x)
		}
		wanted, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decoded(t, wanted), decoded(t, got)); diff != "" {
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
