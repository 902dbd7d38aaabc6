package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

func TestLimitOfNewerModels(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t)
	p := connect(t, s.BaseURL())
	s.Queue(openaitest.Say("done"))
	r := ask("hi")
	r.Model, r.MaxTokens = "gpt-5-mini", 50
	if _, err := complete(t, p, r); err != nil {
		t.Fatal(err)
	}
	if got := s.Requests()[0]; got.MaxCompletionTokens != 50 || got.MaxTokens != 0 {
		t.Errorf("limits %d, %d", got.MaxTokens, got.MaxCompletionTokens)
	}
}

// Servers differ in how they stream calls. None panics.
func TestOddStreams(t *testing.T) {
	t.Parallel()
	sse := func(chunks ...string) openaitest.Answer {
		return openaitest.Answer{Body: "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\ndata: [DONE]\n\n"}
	}
	for _, tt := range []struct {
		name   string
		answer openaitest.Answer
		kind   modelapi.FailureKind // with fails
		fails  bool
		want   string // calls, then finish
	}{
		{name: "filtered", answer: openaitest.Answer{Finish: "content_filter"}, want: "refusal"},
		{name: "refusal", answer: sse(`{"choices":[{"index":0,"delta":{"refusal":"I will not."}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), want: "refusal"},
		{name: "calls that are not counted", answer: sse(
			`{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"one","arguments":"{}"}},{"id":"b",`+
				`"function":{"name":"two","arguments":"{}"}}]}}]}`,
			`{"choices":[{"delta":{},"finish_reason":"stop"}]}`), want: "one({}) two({}) tool_calls"},
		{name: "calls that are all the first", answer: sse(
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{}"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"two","arguments":"{}"}}]}}]}`,
			`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`), want: "one({}) two({}) tool_calls"},
		{name: "calls that are mixed", answer: sse(
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":""}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"two","arguments":""}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}},{"index":1,`+
				`"function":{"arguments":"{\"b\":"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"2}"}},{"index":0,`+
				`"function":{"arguments":"1}"}}]}}]}`,
			`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`), want: `one({"a":1}) two({"b":2}) tool_calls`},
		{name: "older function call", answer: sse(
			`{"choices":[{"delta":{"function_call":{"name":"one","arguments":"{"}}}]}`,
			`{"choices":[{"delta":{"function_call":{"arguments":"}"}},"finish_reason":"function_call"}]}`),
			want: `one({}) tool_calls`},
		{name: "no choices", answer: sse(`{"choices":[]}`), fails: true, kind: modelapi.Broken},
		{name: "nothing at all", answer: openaitest.Answer{Body: "data: [DONE]\n\n"}, fails: true, kind: modelapi.Broken},
		{name: "comments only", answer: openaitest.Answer{Body: strings.Repeat(": keep-alive\n\n", 1000)}, fails: true,
			kind: modelapi.Broken},
		{name: "wrong types", answer: sse(`{"choices":"none"}`), fails: true, kind: modelapi.BadAnswer},
		{name: "negative index",
			answer: sse(`{"choices":[{"delta":{"tool_calls":[{"index":-7,"function":{"name":"one",` +
				`"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`), want: "one({}) tool_calls"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := openaitest.New(t)
			s.Queue(tt.answer)
			h, err := complete(t, connect(t, s.BaseURL()), ask("hi"))
			if tt.fails {
				if err == nil || modelapi.KindOf(err) != tt.kind {
					t.Errorf("got %v, want a failure of kind %d", err, tt.kind)
				}
				if len(h.calls) > 0 {
					t.Errorf("calls of a failed answer were passed on: %v", h.calls)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range h.calls {
				got = append(got, fmt.Sprintf("%s(%s)", c.GetName(), c.GetArguments()))
			}
			if g := strings.Join(append(got, h.finish), " "); g != tt.want {
				t.Errorf("got %s, want %s", g, tt.want)
			}
		})
	}
}

// The cost of one reply on both sides together.
func BenchmarkComplete(b *testing.B) {
	s := openaitest.New(b)
	s.Keep(0)
	s.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("A short reply, as most are.") })
	p := connect(b, s.BaseURL())
	r := ask("hello")
	for i := range 10 {
		r.Tools = append(r.Tools, &extensionv1.Tool{Name: fmt.Sprintf("core__tool_%d", i),
			Description: strings.Repeat("d", 200),
			Schema: []byte(`{"type":"object","properties":{"channel_id":{"type":"string"},"text":{"type":"string"}},` +
				`"required":["channel_id","text"]}`)})
	}
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := p.Complete(b.Context(), r, func(*sdk.Delta) error { return nil }); err != nil {
				b.Error(err)
			}
		}
	})
}
