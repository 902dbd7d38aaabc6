// Package webtest has servers on loopback that play the web: SearXNG, Brave Search and sites.
package webtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Result is what an engine found.
type Result struct{ Title, URL, Text, Date string }

// Engine is a server of a search engine.
type Engine struct {
	URL string

	mu      sync.Mutex
	results []Result
	status  int
	body    string
	queries []string
	headers []http.Header
	mute    [][]string
}

// Find sets what is found from now on.
func (e *Engine) Find(results ...Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.results = results
}

// Fail answers with a status and a body from now on; 0: no longer.
func (e *Engine) Fail(status int, body string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status, e.body = status, body
}

// Unresponsive names engines that SearXNG got no answer from, each with the reason.
func (e *Engine) Unresponsive(engines ...[]string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mute = engines
}

// Queries returns what was searched for.
func (e *Engine) Queries() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.queries...)
}

// Headers returns those of the requests.
func (e *Engine) Headers() []http.Header {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]http.Header(nil), e.headers...)
}

// SearXNG starts a server that answers in JSON.
func SearXNG(t testing.TB) *Engine {
	t.Helper()
	e := &Engine{}
	e.URL = Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if e.failed(w, r, r.FormValue("q")) {
			return
		}
		if r.URL.Path != "/search" || r.FormValue("format") != "json" || r.FormValue("q") == "" {
			http.Error(w, "<h1>Forbidden</h1>", http.StatusForbidden)
			return
		}
		results := []map[string]any{}
		for _, f := range e.found() {
			results = append(results, map[string]any{"title": f.Title, "url": f.URL, "content": f.Text,
				"publishedDate": orNull(f.Date), "engine": "duckduckgo", "score": 1.5})
		}
		e.mu.Lock()
		mute := e.mute
		e.mu.Unlock()
		reply(w, map[string]any{"query": r.FormValue("q"), "number_of_results": 0, "results": results,
			"answers": []any{}, "infoboxes": []any{}, "suggestions": []any{}, "unresponsive_engines": mute})
	})
	return e
}

// Brave starts a server with the API of Brave Search that takes one key.
func Brave(t testing.TB, key string) *Engine {
	t.Helper()
	e := &Engine{}
	e.URL = Serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case e.failed(w, r, r.FormValue("q")):
			return
		case r.URL.Path != "/res/v1/web/search":
			http.NotFound(w, r)
			return
		case r.Header.Get("X-Subscription-Token") != key:
			w.WriteHeader(http.StatusUnprocessableEntity)
			reply(w, map[string]any{"type": "ErrorResponse", "error": map[string]any{
				"code": "SUBSCRIPTION_TOKEN_INVALID", "detail": "The provided subscription token is invalid.", "status": 422,
			}})
			return
		}
		results := []map[string]any{}
		for _, f := range e.found() {
			results = append(results, map[string]any{"title": f.Title, "url": f.URL, "description": f.Text,
				"page_age": f.Date, "age": "2 days ago", "language": "en"})
		}
		reply(w, map[string]any{"type": "search", "query": map[string]any{"original": r.FormValue("q")},
			"web": map[string]any{"type": "search", "results": results}})
	})
	return e
}

// failed notes a request, and answers it if the engine fails.
func (e *Engine) failed(w http.ResponseWriter, r *http.Request, query string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queries, e.headers = append(e.queries, query), append(e.headers, r.Header)
	if e.status == 0 {
		return false
	}
	w.WriteHeader(e.status)
	_, _ = io.WriteString(w, e.body)
	return true
}

func (e *Engine) found() []Result {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.results
}

// Serve starts a server on loopback, and returns its URL.
func Serve(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
