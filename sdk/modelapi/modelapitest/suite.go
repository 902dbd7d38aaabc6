package modelapitest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// Suite tests a kind of API against its fake server.
func Suite(t *testing.T, s Subject) {
	for name, test := range map[string]func(*testing.T){
		"Text": s.text, "Calls": s.calls, "Finish": s.finish, "WholeDialog": s.wholeDialog, "NoKey": s.noKey,
		"NoModels": s.noModels, "Redirects": s.redirects, "Retries": s.retries, "BrokenStreams": s.brokenStreams,
		"TotalTimeout": s.totalTimeout, "Unreachable": s.unreachable, "RefusedConnections": s.refusedConnections,
		"EmitEnds": s.emitEnds, "CallerCancels": s.callerCancels, "Concurrent": s.concurrent,
		"TooManyCalls": s.tooManyCalls, "Check": s.check, "ConnectionsAreReused": s.connectionsAreReused,
		"Prices": s.prices, "Windows": s.windows, "WindowIsAskedLazily": s.windowIsAskedLazily,
		"TooLongForTheWindow": s.tooLongForTheWindow,
		"Images":              s.images, "UnseenImages": s.unseenImages,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func (s Subject) text(t *testing.T) {
	f := s.start(t)
	f.RequireKey(testKey)
	f.Queue(Answer{Text: "Привет, мир!", Pieces: 4, Input: 12, Output: 3, Cached: 5})
	h, err := complete(t, s.connect(t, withKey(f.BaseURL()), testKey), ask("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if h.text != "Привет, мир!" || h.pieces != 4 || h.finish != "stop" || h.model != "local/test-model" {
		t.Errorf("got %+v", h)
	}
	if h.usage.GetInputTokens() != 12 || h.usage.GetOutputTokens() != 3 || h.usage.GetCachedTokens() != 5 {
		t.Errorf("usage %v", h.usage)
	}
	if a := f.Asked()[0]; a.Model != "test-model" || a.Text != "hello" || a.Key != testKey {
		t.Errorf("asked %+v", a)
	}
}

func (s Subject) calls(t *testing.T) {
	f := s.start(t)
	f.Queue(Answer{Text: "One moment.", Calls: []Call{
		{ID: "call_a", Name: "list_channels", Arguments: ""},
		{ID: "call_b", Name: "send_to_channel", Arguments: `{"channel_id": "telegram_channel", "text": "Привет"}`},
	}})
	h, err := complete(t, s.connect(t, withKey(f.BaseURL()), testKey), ask("hi"))
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

// What the model wrote is passed on as it is.
func (s Subject) finish(t *testing.T) {
	f := s.start(t)
	for name, tt := range map[string]struct {
		answer Answer
		want   string
	}{
		"not JSON":  {CallTool("send_to_channel", `{"text": "hal`), `send_to_channel({"text": "hal) tool_calls`},
		"no name":   {CallTool("", "{}"), "({}) tool_calls"},
		"empty":     {Answer{}, "stop"},
		"length":    {Answer{Text: "and so", Cut: true}, "length"},
		"a refusal": {Answer{Refuse: true}, "refusal"},
	} {
		f.Queue(tt.answer)
		h, err := complete(t, s.connect(t, withKey(f.BaseURL()), testKey), ask("hi"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, c := range h.calls {
			got = append(got, fmt.Sprintf("%s(%s)", c.GetName(), c.GetArguments()))
		}
		if g := strings.Join(append(got, h.finish), " "); g != tt.want {
			t.Errorf("%s: got %s, want %s", name, g, tt.want)
		}
	}
}

// The fakes make the checks of the real APIs, so these accept what the fakes accept.
func (s Subject) wholeDialog(t *testing.T) {
	long := strings.Repeat("x", 60)
	tools := []*extensionv1.Tool{
		{Name: "list_channels", Description: "d",
			Schema: []byte(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`)},
		{Name: "list_agents"},
	}
	calls := []*extensionv1.Message{
		{Role: "assistant", Content: "  ", Calls: []*busv1.Call{
			{CallId: "session/with:odd#characters", Name: "core/list_channels", Arguments: []byte(`{`)},
			{CallId: long, Name: "схема", Arguments: nil},
			{ProviderId: "only_theirs", Name: "", Arguments: []byte(`[1]`)},
		}},
		{Role: "tool", CallId: "nobody_asked", Content: "stray"},
		{Role: "tool", CallId: long, Content: ""},
		{Role: "tool", CallId: "session/with:odd#characters", Content: "[]"},
	}
	for name, r := range map[string]*sdk.CompleteRequest{
		"all": {MaxTokens: 100, Tools: tools, Messages: append(append([]*extensionv1.Message{
			{Role: "system", Content: "Be brief."}, {Role: "user", Content: ""}, {Role: "assistant"},
			{Role: "user", Content: "go on \xff"}, {Role: "assistant", Content: "well \n"}, {Role: "assistant", Content: "so"},
			{Role: "user", Content: " \n"}}, calls...), &extensionv1.Message{Role: "user", Content: "and now?"})},
		"begins with an answer": {Messages: []*extensionv1.Message{
			{Role: "assistant", Content: "I said."}, {Role: "user", Content: "what?"}}},
		"ends with an answer": {Messages: []*extensionv1.Message{
			{Role: "user", Content: "say"}, {Role: "assistant", Content: "I said. "}}},
		"ends with calls": {Messages: append([]*extensionv1.Message{{Role: "user", Content: "a"}}, calls...),
			Tools: tools},
		"calls without a tool": {Messages: append([]*extensionv1.Message{{Role: "user", Content: "a"}}, calls...)},
		"nothing but a system": {Messages: []*extensionv1.Message{{Role: "system", Content: "You are."}, {Role: "user"}}},
		"several system prompts": {Messages: []*extensionv1.Message{{Role: "system", Content: "You are."},
			{Role: "system", Content: "Really."}, {Role: "user", Content: "hi"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := s.start(t)
			f.Always(Say("done"))
			r.Model = "test-model"
			if _, err := complete(t, s.connect(t, withKey(f.BaseURL()), testKey), r); err != nil {
				t.Fatal(err)
			}
			a := f.Asked()[0]
			if r.GetMaxTokens() > 0 && a.MaxTokens != int(r.GetMaxTokens()) {
				t.Errorf("%d tokens, want %d", a.MaxTokens, r.GetMaxTokens())
			}
			for _, m := range r.GetMessages() {
				if text := strings.TrimSpace(modelapi.Text(m.GetContent())); text != "stray" && !strings.Contains(a.Text, text) {
					t.Errorf("%q is missing in %q", text, a.Text)
				}
			}
		})
	}
}

// A server without a key is shown none, and its first model is the default.
func (s Subject) noKey(t *testing.T) {
	f := s.start(t)
	f.NoKey()
	f.OnlyModels("qwen3", "zephyr")
	f.Always(Say("hi"))
	server := s.connect(t, modelapi.Config{BaseURL: f.BaseURL()}, "")
	for range 2 {
		h, err := complete(t, server, &sdk.CompleteRequest{Messages: ask("hi").Messages})
		if err != nil || h.text != "hi" || h.model != "local/qwen3" {
			t.Fatalf("got %+v, %v", h, err)
		}
	}
	for _, a := range f.Asked() {
		if a.Key != "" || a.Model != "qwen3" {
			t.Errorf("asked %+v", a)
		}
	}
	if n := f.Lists(); n != 1 {
		t.Errorf("listed the models %d times", n)
	}
	h, err := complete(t, s.connect(t, modelapi.Config{BaseURL: f.BaseURL(), Model: "local/zephyr"}, ""),
		&sdk.CompleteRequest{Model: "default", Messages: ask("hi").Messages})
	if err != nil || h.model != "local/zephyr" {
		t.Errorf("the configured model: %+v, %v", h, err)
	}
	f.RequireKey("some")
	_, err = complete(t, server, ask("hi"))
	wantFailure(t, err, modelapi.KeyRefused, "the server of local needs a key", "models.providers.local.key")
	_, err = complete(t, s.connect(t, withKey(f.BaseURL()), ""), ask("hi"))
	wantFailure(t, err, modelapi.Unconfigured, "set "+keyName)
}

func (s Subject) noModels(t *testing.T) {
	f := s.start(t)
	f.NoKey()
	_, err := complete(t, s.connect(t, modelapi.Config{BaseURL: f.BaseURL()}, ""), &sdk.CompleteRequest{})
	wantFailure(t, err, modelapi.NoModel, "lists no models", "models.providers.local.models")
}

// Neither the key nor the conversation follows a redirect.
func (s Subject) redirects(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		asked := make(chan http.Header, 10)
		other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header }))
		t.Cleanup(other.Close)
		first := httptest.NewServer(http.RedirectHandler(other.URL, status))
		t.Cleanup(first.Close)
		_, err := complete(t, s.connect(t, withKey(first.URL), testKey), ask("hi"))
		wantFailure(t, err, modelapi.BadRequest, "redirects", "models.providers.local.base_url")
		select {
		case h := <-asked:
			t.Errorf("%d: another server was asked: %v", status, h)
		default:
		}
		if strings.Contains(err.Error(), other.URL) {
			t.Errorf("%d: a chat would show the address: %v", status, err)
		}
	}
}

// Only temporary failures are retried.
func (s Subject) retries(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name        string
		answers     []Answer
		requests    int
		kind        modelapi.FailureKind // with says
		says        []string             // nil: it succeeds
		least, most time.Duration        // time taken
	}{
		{"429 once", []Answer{RateLimited("")}, 2, 0, nil, 200 * ms, time.Second},
		{"429 with Retry-After", []Answer{RateLimited("7")}, 2, 0, nil, 7 * time.Second, 7500 * ms},
		{"429 with a fraction", []Answer{RateLimited("1.5")}, 2, 0, nil, 1500 * ms, 2 * time.Second},
		{"500, 502, 503", []Answer{Fail(500, "oops"), Fail(502, "oops"), Fail(503, "oops")}, 4, 0, nil, time.Second,
			10 * time.Second},
		{"overloaded", []Answer{Fail(529, "Overloaded")}, 2, 0, nil, 200 * ms, time.Second},
		{"429 forever", repeated(RateLimited(""), 9), 5, modelapi.RateLimited,
			[]string{"429", "5 attempts", "the server of local"}, 0, 30 * time.Second},
		{"500 forever", repeated(Fail(500, "oops"), 9), 5, modelapi.Unavailable, []string{"500", "try again later"}, 0,
			30 * time.Second},
		{"Retry-After of an hour", []Answer{RateLimited("3600")}, 1, modelapi.RateLimited, []string{"429"}, 0, time.Second},
		{"no quota", []Answer{{Status: 429, Message: "You exceeded your current quota", Code: "insufficient_quota"}}, 1,
			modelapi.RateLimited, []string{"billing"}, 0, time.Second},
		{"no credit", []Answer{Fail(400, "Your credit balance is too low to access the API.")}, 1, modelapi.RateLimited,
			[]string{"billing", keyName}, 0, time.Second},
		{"402", []Answer{Fail(402, "Payment required")}, 1, modelapi.RateLimited, []string{"billing"}, 0, time.Second},
		{"401", []Answer{Fail(401, "Incorrect API key provided: "+testKey)}, 1, modelapi.KeyRefused,
			[]string{keyName, "refused"}, 0, time.Second},
		{"403", []Answer{Fail(403, "Country not supported, "+testKey)}, 1, modelapi.Denied,
			[]string{"Country not supported", "***"}, 0, time.Second},
		{"404", []Answer{{Status: 404, Message: "The model `test-model` does not exist", Code: "model_not_found"}}, 1,
			modelapi.NoModel, []string{"test-model", "models.providers.local.models"}, 0, time.Second},
		{"404 of something else", []Answer{Fail(404, "page not found")}, 1, modelapi.NoModel,
			[]string{"models.providers.local.base_url"}, 0, time.Second},
		{"400", []Answer{Fail(400, "Unknown parameter")}, 1, modelapi.BadRequest, []string{"Unknown parameter"}, 0,
			time.Second},
		{"too long", []Answer{{Status: 400, Message: "maximum context length", Code: "context_length_exceeded"}}, 1,
			modelapi.TooLong, []string{"/new"}, 0, time.Second},
		{"also too long", []Answer{Fail(400, "prompt is too long: 210000 tokens > 200000 maximum")}, 1, modelapi.TooLong,
			[]string{"/new"}, 0, time.Second},
		{"501", []Answer{Fail(501, "not here")}, 1, modelapi.Unavailable, []string{"501"}, 0, time.Second},
		{"cut before the header", []Answer{{Fault: Cut}}, 2, 0, nil, 0, time.Second},
		{"cut before the text", []Answer{Break(Cut, "abc", 1)}, 2, 0, nil, 200 * ms, time.Second},
		{"ends before the text", repeated(Break(EndEarly, "abc", 1), 2), 3, 0, nil, 600 * ms, 2 * time.Second},
		{"ends in a call", []Answer{{Calls: []Call{NewCall("one", `{"a": 1}`)}, Fault: EndEarly, AfterChunks: 4}}, 2, 0, nil,
			200 * ms, time.Second},
		{"cut forever", repeated(Break(Cut, "abc", 1), 9), 5, modelapi.Broken, []string{"in the middle", "try again"}, 0,
			30 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, server, done := s.inMemory(t, modelapi.Config{})
				defer done()
				f.Queue(tt.answers...)
				f.Queue(Say("at last"))
				begin := time.Now()
				h, err := complete(t, server, ask("hi"))
				took := time.Since(begin)
				if tt.says != nil {
					wantFailure(t, err, tt.kind, tt.says...)
				} else if err != nil || h.text != "at last" {
					t.Errorf("got %+v, %v", h, err)
				}
				if n := len(f.Asked()); n != tt.requests {
					t.Errorf("%d requests, want %d", n, tt.requests)
				}
				if took < tt.least || took > tt.most {
					t.Errorf("took %s of fake time, want %s to %s", took, tt.least, tt.most)
				}
			})
		})
	}
}

func repeated(a Answer, n int) []Answer {
	out := make([]Answer, n)
	for i := range out {
		out[i] = a
	}
	return out
}

// After a part of an answer was passed on, there are no retries.
func (s Subject) brokenStreams(t *testing.T) {
	page := Answer{ContentType: "text/html; charset=utf-8", Body: "<html>Sign in to the network</html>"}
	whole := Answer{ContentType: "application/json", Body: `{"choices":[{"message":{"content":"hi"}}]}`}
	for _, tt := range []struct {
		name   string
		answer Answer
		kind   modelapi.FailureKind
		says   string
		text   string // passed on before
		took   time.Duration
	}{
		{name: "stall", answer: Broken(Stall, "abc", 1), kind: modelapi.Stalled, says: "stopped sending for 20 s", text: "a",
			took: 20 * time.Second},
		{name: "stall at once", answer: Answer{Delay: time.Hour}, kind: modelapi.Stalled,
			says: "did not begin to answer within 20 s", took: 20 * time.Second},
		{name: "cut", answer: Broken(Cut, "abc", 2), kind: modelapi.Broken, says: "in the middle", text: "ab"},
		{name: "ends early", answer: Broken(EndEarly, "abc", 2), kind: modelapi.Broken, says: "in the middle", text: "ab"},
		{name: "rubbish", answer: Broken(Rubbish, "abc", 1), kind: modelapi.BadAnswer, says: "cannot be used", text: "a"},
		{name: "error", answer: Broken(ErrorChunk, "abc", 1), kind: modelapi.Unavailable, says: "had an error", text: "a"},
		{name: "page", answer: page, kind: modelapi.BadAnswer, says: "models.providers.local.base_url"},
		{name: "no stream", answer: whole, kind: modelapi.BadAnswer, says: "application/json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, server, done := s.inMemory(t, modelapi.Config{
					IdleTimeout: modelapi.Duration(20 * time.Second), Timeout: modelapi.Duration(125 * time.Second),
				})
				defer done()
				f.Queue(tt.answer, Say("asked again"))
				begin := time.Now()
				h, err := complete(t, server, ask("hi"))
				wantFailure(t, err, tt.kind, tt.says)
				if h.text != tt.text || len(h.calls) > 0 {
					t.Errorf("passed on %q and %v, want %q", h.text, h.calls, tt.text)
				}
				if n := len(f.Asked()); n != 1 {
					t.Errorf("%d requests", n)
				}
				if took := time.Since(begin); took < tt.took || took > tt.took+time.Second {
					t.Errorf("took %s of fake time, want %s", took, tt.took)
				}
			})
		})
	}
}

// The total timeout includes the waits between attempts.
func (s Subject) totalTimeout(t *testing.T) {
	for name, answer := range map[string]Answer{
		"retries": RateLimited("8"), "an endless answer": {Text: strings.Repeat("x", 100), Pieces: 100, Pause: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, server, done := s.inMemory(t, modelapi.Config{Timeout: modelapi.Duration(10 * time.Second)})
			defer done()
			f.Always(answer)
			begin := time.Now()
			_, err := complete(t, server, ask("hi"))
			wantFailure(t, err, modelapi.Stalled, "within 10 s")
			if took := time.Since(begin); took != 10*time.Second {
				t.Errorf("%s took %s", name, took)
			}
		})
	}
}

func (s Subject) unreachable(t *testing.T) {
	none := 0
	c := withKey("http://127.0.0.1:1" + s.Base) // a port without a server
	c.Retries = &none
	_, err := complete(t, s.connect(t, c, testKey), ask("hi"))
	wantFailure(t, err, modelapi.Unavailable, "connection refused", "models.providers.local.base_url")
	if strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("a chat would show the address: %v", err)
	}
	if !errors.Is(err, contract.ErrUnavailable) {
		t.Errorf("%v is not marked as unavailable", err)
	}
}

func (s Subject) refusedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, server, done := s.inMemory(t, modelapi.Config{})
		defer done()
		f.Queue(Say("at last"))
		transport := server.Transport()
		dial, dials := transport.DialContext, 0
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if dials++; dials <= 2 {
				return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
			}
			return dial(ctx, network, address)
		}
		if h, err := complete(t, server, ask("hi")); err != nil || h.text != "at last" {
			t.Errorf("got %+v, %v", h, err)
		}
	})
}

func (s Subject) emitEnds(t *testing.T) {
	f := s.start(t)
	f.Queue(Say("one two three"))
	gone := errors.New("the reader is gone")
	err := s.connect(t, withKey(f.BaseURL()), testKey).Complete(t.Context(), ask("hi"),
		func(*sdk.Delta) error { return gone })
	if !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func (s Subject) callerCancels(t *testing.T) {
	f := s.start(t)
	f.Queue(Broken(Stall, "one two three", 1))
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("/stop")
	err := s.connect(t, withKey(f.BaseURL()), testKey).Complete(ctx, ask("hi"),
		func(*sdk.Delta) error { cancel(stop); return nil })
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

func (s Subject) concurrent(t *testing.T) {
	f := s.start(t)
	f.Always(Answer{Echo: true})
	server := s.connect(t, withKey(f.BaseURL()), testKey)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for k := range 4 {
				said := fmt.Sprintf("%d/%d", i, k)
				var h heard
				if err := server.Complete(t.Context(), ask(said), h.emit); err != nil || h.text != said {
					t.Errorf("%s: %q, %v", said, h.text, err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(f.Asked()); n != 256 {
		t.Errorf("%d requests, want 256", n)
	}
}

func (s Subject) tooManyCalls(t *testing.T) {
	f := s.start(t)
	many := Answer{}
	for range modelapi.DefaultMaxCalls + 1 {
		many.Calls = append(many.Calls, NewCall("list_channels", "{}"))
	}
	f.Queue(many)
	h, err := complete(t, s.connect(t, withKey(f.BaseURL()), testKey), ask("hi"))
	wantFailure(t, err, modelapi.BadAnswer, "more than")
	if len(h.calls) > 0 {
		t.Errorf("calls of a failed answer were passed on: %v", h.calls)
	}
}

// A client that stops reading at the last event needs a new connection for each
// completion. One may end after the next has begun, so two connections can alternate.
func (s Subject) connectionsAreReused(t *testing.T) {
	f := s.start(t)
	f.Always(Say("hi"))
	server := s.connect(t, withKey(f.BaseURL()), testKey)
	dial, dials := server.Transport().DialContext, atomic.Int64{}
	server.Transport().DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return dial(ctx, network, address)
	}
	const n = 100
	for range n {
		if _, err := complete(t, server, ask("hello")); err != nil {
			t.Fatal(err)
		}
	}
	if dials.Load() == n {
		t.Errorf("%d completions took a connection each", n)
	}
}
