package modelapitest

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// long is a request that might not fit into a small window.
func long(bytes int) *sdk.CompleteRequest { return ask(strings.Repeat("word ", bytes/5)) }

// windows tests what a server's list may tell of the context window. What is not a
// plausible number is ignored.
func (s Subject) windows(t *testing.T) {
	for name, tt := range map[string]struct {
		listing Listing
		config  modelapi.Config
		want    int64
	}{
		"vLLM":           {listing: tells("max_model_len", 8192), want: 8192},
		"OpenRouter":     {listing: tells("context_length", 262144), want: 262144},
		"llama.cpp":      {listing: tells("meta", map[string]any{"n_ctx": 4096}), want: 4096},
		"none":           {},
		"a text":         {listing: tells("max_model_len", "8192")},
		"an object":      {listing: tells("max_model_len", map[string]any{"n": 1})},
		"null":           {listing: tells("meta", nil)},
		"huge":           {listing: tells("max_model_len", 1e300)},
		"tiny":           {listing: tells("max_model_len", 1)},
		"negative":       {listing: tells("max_model_len", -8192)},
		"no list":        {listing: Listing{Status: http.StatusNotFound}},
		"configured":     {listing: tells("max_model_len", 8192), config: modelapi.Config{Context: 32768}, want: 32768},
		"of a model":     {config: modelapi.Config{Context: 9, Contexts: map[string]int64{"test-model": 65536}}, want: 65536},
		"of another one": {config: modelapi.Config{Contexts: map[string]int64{"other": 65536}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := s.start(t)
			f.OnlyModels("test-model")
			f.ListAs(tt.listing)
			f.Always(Say("ok"))
			c := withKey(f.BaseURL())
			c.Context, c.Contexts = tt.config.Context, tt.config.Contexts
			server := s.connect(t, c, testKey)
			h, err := complete(t, server, long(12_000))
			if err != nil || h.text != "ok" || h.window != tt.want {
				t.Errorf("got %+v, %v; want the window %d", h, err, tt.want)
			}
			if got, _ := server.Window(t.Context(), "test-model"); got != tt.want {
				t.Errorf("the window is %d, want %d", got, tt.want)
			}
		})
	}
}

func tells(field string, value any) Listing { return Listing{Fields: map[string]any{field: value}} }

// A window is asked for when a request might not fit, and again after ten minutes; an
// answer that takes too long is not waited for.
func (s Subject) windowIsAskedLazily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, server, done := s.inMemory(t, modelapi.Config{})
		defer done()
		f.OnlyModels("test-model")
		f.Always(Say("ok"))
		f.ListAs(tells("max_model_len", 8192))
		expect := func(r *sdk.CompleteRequest, window int64, lists int) {
			t.Helper()
			h, err := complete(t, server, r)
			synctest.Wait()
			if err != nil || h.window != window || f.Lists() != lists {
				t.Errorf("window %d after %d lists: %v; want %d after %d", h.window, f.Lists(), err, window, lists)
			}
		}
		expect(ask("hi"), 0, 0)
		expect(long(12_000), 8192, 1)
		expect(long(12_000), 8192, 1)
		expect(ask("hi"), 8192, 1)
		time.Sleep(11 * time.Minute)
		f.ListAs(Listing{Status: http.StatusInternalServerError})
		expect(long(12_000), 8192, 2) // what was known stays so
		time.Sleep(11 * time.Minute)
		f.ListAs(tells("max_model_len", 16384))
		expect(long(12_000), 8192, 3) // it was asked in the background
		expect(long(12_000), 16384, 3)
	})
	synctest.Test(t, func(t *testing.T) {
		f, server, done := s.inMemory(t, modelapi.Config{})
		defer done()
		f.Always(Say("ok"))
		f.ListAs(Listing{Delay: time.Hour})
		for _, wait := range []time.Duration{5 * time.Second, 0} {
			begin := time.Now()
			h, err := complete(t, server, long(12_000))
			if took := time.Since(begin); err != nil || h.window != 0 || took != wait {
				t.Errorf("got %+v, %v after %s of fake time, want %s", h, err, took, wait)
			}
		}
	})
}

// What cannot fit is not sent, and what the server refuses as too long is told with the
// window to assume.
func (s Subject) tooLongForTheWindow(t *testing.T) {
	f := s.start(t)
	f.OnlyModels("test-model")
	f.ListAs(tells("max_model_len", 2048))
	server := s.connect(t, withKey(f.BaseURL()), testKey)
	h, err := complete(t, server, long(30_000))
	wantFailure(t, err, modelapi.TooLong, "2048 tokens", "/new")
	if h.window != 2048 || h.model != "local/test-model" || h.deltas != 1 || len(f.Asked()) != 0 {
		t.Errorf("got %+v after %d requests", h, len(f.Asked()))
	}
	f.ListAs(Listing{})
	server = s.connect(t, withKey(f.BaseURL()), testKey)
	f.Queue(Fail(http.StatusBadRequest, "prompt is too long: 210000 tokens > 200000 maximum"))
	h, err = complete(t, server, long(30_000))
	wantFailure(t, err, modelapi.TooLong, "/new")
	if h.deltas != 1 || h.window < 4000 || h.window > 6000 {
		t.Errorf("got %+v, want a window for half of the request", h)
	}
}
