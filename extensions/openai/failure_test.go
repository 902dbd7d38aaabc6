package openai

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/sdk"
)

// Only temporary failures are retried.
func TestRetries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		answers  []openaitest.Answer
		requests int
		kind     Kind // with fails
		fails    bool
		says     []string
		least    time.Duration // time taken
		most     time.Duration
	}{
		{name: "429 once", answers: []openaitest.Answer{openaitest.RateLimited("")}, requests: 2,
			least: 200 * time.Millisecond, most: time.Second},
		{name: "429 with Retry-After", answers: []openaitest.Answer{openaitest.RateLimited("7")}, requests: 2,
			least: 7 * time.Second, most: 7500 * time.Millisecond},
		{name: "429 with a fraction", answers: []openaitest.Answer{openaitest.RateLimited("1.5")}, requests: 2,
			least: 1500 * time.Millisecond, most: 2 * time.Second},
		{name: "500, 502, 503", answers: []openaitest.Answer{openaitest.Fail(500, "oops"), openaitest.Fail(502, "oops"),
			openaitest.Fail(503, "oops")}, requests: 4, least: time.Second, most: 10 * time.Second},
		{name: "429 forever", answers: repeated(openaitest.RateLimited(""), 9), requests: 5, fails: true,
			kind: RateLimited,
			says: []string{"429", "5 attempts", "the model's server"}, most: 30 * time.Second},
		{name: "500 forever", answers: repeated(openaitest.Fail(500, "oops"), 9), requests: 5, fails: true,
			kind: Unavailable, says: []string{"500", "try again later"}, most: 30 * time.Second},
		{name: "Retry-After of an hour", answers: []openaitest.Answer{openaitest.RateLimited("3600")}, requests: 1,
			fails: true, kind: RateLimited, most: time.Second},
		{name: "no quota", answers: []openaitest.Answer{{Status: 429, Message: "You exceeded your current quota",
			Code: "insufficient_quota"}}, requests: 1, fails: true, kind: RateLimited, says: []string{"billing"},
			most: time.Second},
		{name: "401", answers: []openaitest.Answer{openaitest.Fail(401, "Incorrect API key provided: "+testKey)},
			requests: 1, fails: true, kind: KeyRefused, says: []string{KeyName, "refused"}, most: time.Second},
		{name: "403", answers: []openaitest.Answer{openaitest.Fail(403, "Country not supported, "+testKey)},
			requests: 1, fails: true, kind: Denied, says: []string{"Country not supported", "***"}, most: time.Second},
		{name: "404", answers: []openaitest.Answer{{Status: 404, Message: "The model `gpt-test` does not exist",
			Code: "model_not_found"}}, requests: 1, fails: true, kind: NoModel, says: []string{"gpt-test", ModelEnv},
			most: time.Second},
		{name: "404 of something else", answers: []openaitest.Answer{openaitest.Fail(404, "page not found")},
			requests: 1, fails: true, kind: NoModel, says: []string{URLEnv}, most: time.Second},
		{name: "400", answers: []openaitest.Answer{openaitest.Fail(400, "Unknown parameter")}, requests: 1, fails: true,
			kind: BadRequest, says: []string{"Unknown parameter"}, most: time.Second},
		{name: "too long", answers: []openaitest.Answer{{Status: 400, Message: "maximum context length",
			Code: "context_length_exceeded"}}, requests: 1, fails: true, kind: TooLong, says: []string{"/new"},
			most: time.Second},
		{name: "501", answers: []openaitest.Answer{openaitest.Fail(501, "not here")}, requests: 1, fails: true,
			kind: Unavailable, most: time.Second},
		{name: "cut before the header", answers: []openaitest.Answer{{Fault: openaitest.Cut}}, requests: 2,
			most: time.Second},
		{name: "cut before the text", answers: []openaitest.Answer{openaitest.Break(openaitest.Cut, "abc", 1)},
			requests: 2, least: 200 * time.Millisecond, most: time.Second},
		{name: "ends before the text", answers: repeated(openaitest.Break(openaitest.EndEarly, "abc", 1), 2),
			requests: 3, least: 600 * time.Millisecond, most: 2 * time.Second},
		{name: "ends in a call", answers: []openaitest.Answer{{Calls: []openaitest.Call{openaitest.NewCall("one",
			`{"a": 1}`)}, Fault: openaitest.EndEarly, AfterChunks: 4}}, requests: 2,
			least: 200 * time.Millisecond, most: time.Second},
		{name: "cut forever", answers: repeated(openaitest.Break(openaitest.Cut, "abc", 1), 9), requests: 5,
			fails: true, kind: Broken, says: []string{"in the middle", "try again"}, most: 30 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, p, done := inMemory(t, Config{})
				defer done()
				s.Queue(tt.answers...)
				s.Queue(openaitest.Say("at last"))
				begin := time.Now()
				h, err := complete(t, p, ask("hi"))
				took := time.Since(begin)
				if tt.fails {
					wantFailure(t, err, tt.kind, tt.says...)
				} else if err != nil || h.text != "at last" {
					t.Errorf("got %+v, %v", h, err)
				}
				if n := s.Total(); n != tt.requests {
					t.Errorf("%d requests, want %d", n, tt.requests)
				}
				if took < tt.least || took > tt.most {
					t.Errorf("took %s of fake time, want %s to %s", took, tt.least, tt.most)
				}
			})
		})
	}
}

func repeated(a openaitest.Answer, n int) []openaitest.Answer {
	out := make([]openaitest.Answer, n)
	for i := range out {
		out[i] = a
	}
	return out
}

// After a part of an answer was passed on, there are no retries.
func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	page := openaitest.Answer{ContentType: "text/html; charset=utf-8", Body: "<html>Sign in to the network</html>"}
	whole := openaitest.Answer{ContentType: "application/json", Body: `{"choices":[{"message":{"content":"hi"}}]}`}
	for _, tt := range []struct {
		name   string
		answer openaitest.Answer
		kind   Kind
		says   string
		text   string // passed on before
		took   time.Duration
	}{
		{name: "stall", answer: openaitest.Break(openaitest.Stall, "abc", 2), kind: Stalled,
			says: "stopped sending for 20s", text: "a", took: 20 * time.Second},
		{name: "stall at once", answer: openaitest.Answer{Delay: time.Hour}, kind: Stalled,
			says: "did not begin to answer within 20s", took: 20 * time.Second},
		{name: "endless", answer: openaitest.Answer{Text: strings.Repeat("x", 100), Pieces: 100,
			Pause: 10 * time.Second}, kind: Stalled, says: "within 2m5s", text: strings.Repeat("x", 12),
			took: 125 * time.Second},
		{name: "cut", answer: openaitest.Break(openaitest.Cut, "abc", 3), kind: Broken, says: "in the middle",
			text: "ab"},
		{name: "ends early", answer: openaitest.Break(openaitest.EndEarly, "abc", 3), kind: Broken,
			says: "in the middle", text: "ab"},
		{name: "rubbish", answer: openaitest.Break(openaitest.Rubbish, "abc", 2), kind: BadAnswer,
			says: "cannot be used", text: "a"},
		{name: "error chunk", answer: openaitest.Break(openaitest.ErrorChunk, "abc", 2), kind: Unavailable,
			says: "had an error", text: "a"},
		{name: "page", answer: page, kind: BadAnswer, says: URLEnv},
		{name: "no stream", answer: whole, kind: BadAnswer, says: "application/json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, p, done := inMemory(t, Config{IdleTimeout: Duration(20 * time.Second),
					Timeout: Duration(125 * time.Second)})
				defer done()
				s.Queue(tt.answer, openaitest.Say("asked again"))
				begin := time.Now()
				h, err := complete(t, p, ask("hi"))
				wantFailure(t, err, tt.kind, tt.says)
				if h.text != tt.text || len(h.calls) > 0 {
					t.Errorf("passed on %q and %v, want %q", h.text, h.calls, tt.text)
				}
				if s.Total() != 1 {
					t.Errorf("%d requests", s.Total())
				}
				if took := time.Since(begin); took < tt.took || took > tt.took+time.Second {
					t.Errorf("took %s of fake time, want %s", took, tt.took)
				}
			})
		})
	}
}

// The total timeout includes the waits between attempts.
func TestTotalTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p, done := inMemory(t, Config{Timeout: Duration(10 * time.Second)})
		defer done()
		s.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.RateLimited("8") })
		begin := time.Now()
		_, err := complete(t, p, ask("hi"))
		wantFailure(t, err, Stalled, "within 10s")
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:1/v1" // a port without a server
	none := 0
	p := connect(t, Config{BaseURL: address, Retries: &none})
	_, err := complete(t, p, ask("hi"))
	wantFailure(t, err, Unavailable, "connection refused", URLEnv)
	if strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("a chat would show the address: %v", err)
	}
	if !errors.Is(err, contract.ErrUnavailable) {
		t.Errorf("%v is not marked as unavailable", err)
	}
}

func TestRefusedConnectionsAreRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p, done := inMemory(t, Config{})
		defer done()
		s.Queue(openaitest.Say("at last"))
		transport := p.http.client.HTTPClient.Transport.(*http.Transport)
		dial, dials := transport.DialContext, 0
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if dials++; dials <= 2 {
				return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
			}
			return dial(ctx, network, address)
		}
		if h, err := complete(t, p, ask("hi")); err != nil || h.text != "at last" {
			t.Errorf("got %+v, %v", h, err)
		}
	})
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t)
	s.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("hi") })

	var r reports
	m := &models{id: ID}
	m.start(Config{BaseURL: s.BaseURL(), Key: KeyName}, "", silent(), r.set)
	if got := r.last(); !strings.HasPrefix(got, "unconfigured") || !strings.Contains(got, KeyName) {
		t.Errorf("without a key: %q", got)
	}
	wantFailure(t, m.Complete(t.Context(), ask("hi"), func(*sdk.Delta) error { return nil }), Unconfigured, KeyName)
	if s.Total() != 0 {
		t.Error("a request without a key was sent")
	}

	m = &models{id: ID}
	m.start(Config{BaseURL: s.BaseURL(), Key: KeyName}, testKey, silent(), r.set)
	t.Cleanup(m.provider.Load().close)
	if got := r.last(); got != "ready" {
		t.Errorf("with a key: %q", got)
	}
	say := func() error { return m.Complete(t.Context(), ask("hi"), func(*sdk.Delta) error { return nil }) }
	if err := say(); err != nil {
		t.Fatal(err)
	}
	s.RequireKey("another")
	for range 2 {
		wantFailure(t, say(), KeyRefused)
	}
	if got := r.last(); !strings.HasPrefix(got, "degraded the key in OPENAI_API_KEY was refused") ||
		strings.Contains(got, testKey) {
		t.Errorf("with a refused key: %q", got)
	}
	s.RequireKey(testKey)
	if err := say(); err != nil {
		t.Fatal(err)
	}
	if got := r.last(); got != "ready" {
		t.Errorf("with a good key again: %q", got)
	}
	if n := len(r.states); n != 4 { // unconfigured, ready, degraded, ready
		t.Errorf("%d reports: %q", n, r.states)
	}
}

func TestWrongConfiguration(t *testing.T) {
	t.Parallel()
	var r reports
	m := &models{id: ID}
	m.start(Config{BaseURL: "localhost:11434"}, testKey, silent(), r.set)
	if got := r.last(); !strings.HasPrefix(got, "unconfigured") || !strings.Contains(got, URLEnv) {
		t.Errorf("reported %q", got)
	}
	wantFailure(t, m.Complete(t.Context(), ask("hi"), func(*sdk.Delta) error { return nil }), Unconfigured, URLEnv)
}

func TestConfig(t *testing.T) {
	t.Parallel()
	negative := -1
	for _, c := range []Config{
		{BaseURL: "api.openai.com"}, {BaseURL: "ftp://x"}, {BaseURL: "http://"},
		{BaseURL: "http://user:hidden word@x:y/"},
		{Retries: &negative}, {Timeout: -1}, {MaxCalls: -1},
	} {
		if _, err := newProvider(ID, c, testKey); err == nil {
			t.Errorf("%+v is accepted", c)
		} else if strings.Contains(err.Error(), "hidden") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
	c, err := Config{BaseURL: " http://localhost:11434/v1/ "}.resolved(ID)
	if err != nil || c.BaseURL != "http://localhost:11434/v1" || c.Model != "" {
		t.Errorf("%+v, %v", c, err)
	}
	p, err := newProvider(ID, Config{BaseURL: "https://user:hidden@example.org/v1"}, testKey)
	if err != nil || strings.Contains(p.where, "hidden") {
		t.Errorf("%s, %v", p.where, err)
	}
	var d Duration
	if err := d.UnmarshalJSON([]byte(`"1m30s"`)); err != nil || d != Duration(90*time.Second) {
		t.Errorf("%v, %v", d, err)
	}
	if d.UnmarshalJSON([]byte(`5`)) == nil || d.UnmarshalJSON([]byte(`"soon"`)) == nil {
		t.Error("a duration that is none is accepted")
	}
}

func TestEnvironmentWins(t *testing.T) {
	t.Setenv(URLEnv, "http://env.test/v1")
	t.Setenv(ModelEnv, "env-model")
	if c := (Config{BaseURL: "http://config.test", Model: "m"}).withEnvironment(ID); c.BaseURL != "http://env.test/v1" ||
		c.Model != "env-model" {
		t.Errorf("%+v", c)
	}
	if c := (Config{BaseURL: "http://config.test"}).withEnvironment("local"); c.BaseURL != "http://config.test" {
		t.Errorf("another server takes them: %+v", c)
	}
	t.Setenv(URLEnv, "")
	if c := (Config{BaseURL: "http://config.test"}).withEnvironment(ID); c.BaseURL != "http://config.test" {
		t.Errorf("%+v", c)
	}
}
