package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/sdk"
)

func TestText(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t)
	s.RequireKey(testKey)
	p := connect(t, Config{BaseURL: s.BaseURL()})
	s.Queue(openaitest.Answer{Text: "Привет, мир!", Pieces: 4, Input: 12, Output: 3})

	h, err := complete(t, p, ask("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if h.text != "Привет, мир!" || h.pieces != 4 || h.finish != "stop" || h.model != "openai/gpt-test" {
		t.Errorf("got %+v", h)
	}
	if h.usage.GetInputTokens() != 12 || h.usage.GetOutputTokens() != 3 {
		t.Errorf("usage %v", h.usage)
	}
	r := s.Requests()[0]
	if r.Model != "gpt-test" || !r.Stream || r.Last("user") != "hello" ||
		r.Header.Get("Authorization") != "Bearer "+testKey {
		t.Errorf("request %+v", r)
	}
}

// An answer ends after its last chunk. A client that stops reading at the last
// chunk needs a new connection for each completion.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	heard, from := make(chan struct{}, 1), make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from <- r.RemoteAddr
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"hi"},`+
			`"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		_ = http.NewResponseController(w).Flush()
		<-heard
	}))
	defer s.Close()
	p := connect(t, Config{BaseURL: s.URL})
	seen := map[string]bool{}
	for range 100 { // one may end after the next has begun, so two connections can alternate
		if _, err := complete(t, p, ask("hello")); err != nil {
			t.Fatal(err)
		}
		heard <- struct{}{}
		addr := <-from
		if seen[addr] {
			return
		}
		seen[addr] = true
	}
	t.Error("100 completions took a connection each")
}

func TestCalls(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t)
	p := connect(t, Config{BaseURL: s.BaseURL()})
	s.Queue(openaitest.Answer{Text: "One moment.", Calls: []openaitest.Call{
		{ID: "call_a", Name: "list_channels", Arguments: ""},
		{ID: "call_b", Name: "send_to_channel",
			Arguments: `{"channel_id": "telegram_channel", "text": "Привет"}`},
	}})
	h, err := complete(t, p, ask("hi"))
	if err != nil {
		t.Fatal(err)
	}
	if h.text != "One moment." || h.finish != "tool_calls" || len(h.calls) != 2 {
		t.Fatalf("got %+v", h)
	}
	if c := h.calls[0]; c.GetProviderId() != "call_a" || c.GetName() != "list_channels" ||
		string(c.GetArguments()) != "{}" {
		t.Errorf("first call %v", c)
	}
	if c := h.calls[1]; c.GetProviderId() != "call_b" ||
		string(c.GetArguments()) != `{"channel_id": "telegram_channel", "text": "Привет"}` {
		t.Errorf("second call %v", c)
	}
}

// The fake makes the checks of the real API, so the API accepts what it accepts.
func TestWholeDialog(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t)
	p := connect(t, Config{BaseURL: s.BaseURL()})
	s.Queue(openaitest.Say("done"))
	long := strings.Repeat("x", 60)
	_, err := complete(t, p, &sdk.CompleteRequest{
		Model: "gpt-test",
		Messages: []*extensionv1.Message{
			{Role: "system", Content: "Be brief."},
			{Role: "user", Content: ""},
			{Role: "assistant"}, // no content
			{Role: "user", Content: "go on \xff"},
			{Role: "assistant", Calls: []*busv1.Call{
				{CallId: "session/with:odd#characters", Name: "core/list_channels", Arguments: []byte(`{`)},
				{CallId: long, Name: "схема", Arguments: nil},
				{ProviderId: "only_theirs", Name: "", Arguments: []byte(`{"a":1}`)},
			}},
			{Role: "tool", CallId: "nobody_asked", Content: "stray"},
			{Role: "tool", CallId: long, Content: ""},
			{Role: "tool", CallId: "session/with:odd#characters", Content: "[]"},
			{Role: "user", Content: "and now?"},
		},
		Tools: []*extensionv1.Tool{
			{Name: "list_channels", Description: "d",
				Schema: []byte(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`)},
			{Name: "list_agents"},
		},
		MaxTokens: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := s.Requests()[0]
	var roles []string
	for _, m := range r.Messages {
		roles = append(roles, m.Role)
	}
	if got := strings.Join(roles, " "); got != "system user user assistant tool tool tool user" {
		t.Errorf("roles: %s", got)
	}
	if a := *r.Messages[3].ToolCalls[0].Function.Arguments; !json.Valid([]byte(a)) {
		t.Errorf("arguments in the history are no JSON: %s", a)
	}
	if r.Messages[6].Content.Text != noResult {
		t.Errorf("the call without a result has %q", r.Messages[6].Content.Text)
	}
	if r.MaxTokens != 100 || r.MaxCompletionTokens != 0 {
		t.Errorf("limits %d, %d", r.MaxTokens, r.MaxCompletionTokens)
	}
}

func TestLimitOfNewerModels(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t)
	p := connect(t, Config{BaseURL: s.BaseURL()})
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

func TestDefaultModel(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t)
	p := connect(t, Config{BaseURL: s.BaseURL(), Model: "openai/house-model"})
	for _, name := range []string{"", "default"} {
		s.QueueFor("house-model", openaitest.Say("here"))
		r := ask("hi")
		r.Model = name
		if h, err := complete(t, p, r); err != nil || h.model != "openai/house-model" {
			t.Errorf("%q: %+v, %v", name, h, err)
		}
	}
}

// The model's output is passed on unchanged, or is an error. None panics.
func TestInvalidAnswersOfTheModel(t *testing.T) {
	t.Parallel()
	many := make([]openaitest.Call, DefaultMaxCalls+1)
	for i := range many {
		many[i] = openaitest.NewCall("list_channels", "{}")
	}
	sse := func(chunks ...string) openaitest.Answer {
		return openaitest.Answer{Body: "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\ndata: [DONE]\n\n"}
	}
	for _, tt := range []struct {
		name   string
		answer openaitest.Answer
		kind   Kind // with fails
		fails  bool
		want   string // calls, then finish
	}{
		{name: "arguments that are not JSON", answer: openaitest.CallTool("send_to_channel", `{"text": "hal`),
			want: `send_to_channel({"text": "hal) tool_calls`},
		{name: "call without a name", answer: openaitest.CallTool("", "{}"), want: `({}) tool_calls`},
		{name: "empty answer", answer: openaitest.Answer{}, want: "stop"},
		{name: "cut at its limit", answer: openaitest.Answer{Text: "and so", Finish: "length"}, want: "length"},
		{name: "filtered", answer: openaitest.Answer{Finish: "content_filter"}, want: "refusal"},
		{name: "refusal", answer: sse(`{"choices":[{"index":0,"delta":{"refusal":"I will not."}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), want: "refusal"},
		{name: "too many calls", answer: openaitest.Answer{Calls: many}, fails: true, kind: BadAnswer},
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
		{name: "no choices", answer: sse(`{"choices":[]}`), fails: true, kind: Broken},
		{name: "nothing at all", answer: openaitest.Answer{Body: "data: [DONE]\n\n"}, fails: true, kind: Broken},
		{name: "comments only", answer: openaitest.Answer{Body: strings.Repeat(": keep-alive\n\n", 1000)}, fails: true,
			kind: BadAnswer},
		{name: "wrong types", answer: sse(`{"choices":"none"}`), fails: true, kind: BadAnswer},
		{name: "negative index",
			answer: sse(`{"choices":[{"delta":{"tool_calls":[{"index":-7,"function":{"name":"one",` +
				`"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`), want: "one({}) tool_calls"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := openaitest.New(t)
			s.Queue(tt.answer)
			none := 0
			h, err := complete(t, connect(t, Config{BaseURL: s.BaseURL(), Retries: &none}), ask("hi"))
			if tt.fails {
				wantFailure(t, err, tt.kind)
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

func TestEmitEndsTheCompletion(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t)
	s.Queue(openaitest.Say("one two three"))
	gone := errors.New("the reader is gone")
	err := connect(t, Config{BaseURL: s.BaseURL()}).complete(t.Context(), ask("hi"),
		func(*sdk.Delta) error { return gone })
	if !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestCancelledByTheCaller(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t)
	s.Queue(openaitest.Break(openaitest.Stall, "one two three", 2))
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("/stop")
	err := connect(t, Config{BaseURL: s.BaseURL()}).complete(ctx, ask("hi"),
		func(*sdk.Delta) error { cancel(stop); return nil })
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

func TestConcurrentCompletions(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t)
	s.Handle(func(r openaitest.Request) openaitest.Answer { return openaitest.Say("you said " + r.Last("user")) })
	p := connect(t, Config{BaseURL: s.BaseURL()})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for k := range 4 {
				said := fmt.Sprintf("%d/%d", i, k)
				var h heard
				if err := p.complete(t.Context(), ask(said), h.emit); err != nil || h.text != "you said "+said {
					t.Errorf("%s: %q, %v", said, h.text, err)
				}
			}
		})
	}
	wg.Wait()
	if n := s.Total(); n != 256 {
		t.Errorf("%d requests, want 256", n)
	}
}

// The cost of one reply on both sides together.
func BenchmarkComplete(b *testing.B) {
	s := openaitest.New(b)
	s.Keep(0)
	s.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("A short reply, as most are.") })
	p := connect(b, Config{BaseURL: s.BaseURL()})
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
			if err := p.complete(b.Context(), r, func(*sdk.Delta) error { return nil }); err != nil {
				b.Error(err)
			}
		}
	})
}
