// Package anthropictest is a server on loopback with Anthropic's Messages API and
// scripted answers. It serves POST /v1/messages, as a stream, and GET /v1/models.
//
// It checks requests like the real API (headers, max_tokens, alternating roles, a result
// for each tool use in the next message, tools, at most four cache points) and refuses
// invalid ones with errors of the same form, so that a client that works here sends valid
// requests. It is stricter in one thing: the API merges neighboring messages of the same
// role, and this server refuses them. It only estimates token counts.
//
// An answer comes from the queue, else from the handler; without any, the request is
// refused. A Server is safe for concurrent use.
package anthropictest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/sdk/modelapi/modelapitest"
)

// Answer is a scripted answer.
type Answer = modelapitest.Answer

// Server is one running server.
type Server struct {
	// URL is the server's address, without a path.
	URL string

	http     *http.Server
	closed   chan struct{}
	closing  sync.Once
	mu       sync.Mutex
	key      string
	open     bool // no key is needed
	blind    bool // images are refused
	models   []string
	queue    []Answer
	handler  func(Request) Answer
	requests []Request
	lists    int
	listing  modelapitest.Listing
}

var _ modelapitest.Fake = (*Server)(nil)

// TB is the part of testing.TB that New uses.
type TB interface {
	Helper()
	Fatal(args ...any)
	Cleanup(func())
}

// New starts a server on loopback that is closed when the test ends.
func New(t TB) *Server {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(l)
	t.Cleanup(s.Close)
	return s
}

// Serve returns a server that accepts connections from l. Close closes l.
func Serve(l net.Listener) *Server {
	s := &Server{URL: "http://" + l.Addr().String(), closed: make(chan struct{})}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(l) }()
	return s
}

// BaseURL returns the value for base_url.
func (s *Server) BaseURL() string { return s.URL + "/v1" }

// Close stops the server and closes all connections.
func (s *Server) Close() {
	s.closing.Do(func() {
		close(s.closed)
		_ = s.http.Close()
	})
}

// set changes the server.
func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// RequireKey makes the server refuse other keys. By default it accepts any key that is
// not empty.
func (s *Server) RequireKey(key string) { s.set(func() { s.key, s.open = key, false }) }

// NoKey makes the server accept requests without a key.
func (s *Server) NoKey() { s.set(func() { s.open = true }) }

// OnlyModels makes the server list these models, and refuse others. By default every
// model exists.
func (s *Server) OnlyModels(names ...string) { s.set(func() { s.models = names }) }

// ListAs sets how the models are listed.
func (s *Server) ListAs(l modelapitest.Listing) { s.set(func() { s.listing = l }) }

// Queue appends answers.
func (s *Server) Queue(answers ...Answer) { s.set(func() { s.queue = append(s.queue, answers...) }) }

// Handle sets the handler of requests without a queued answer. f runs concurrently.
func (s *Server) Handle(f func(Request) Answer) { s.set(func() { s.handler = f }) }

// Always answers all requests without a queued answer.
func (s *Server) Always(a Answer) { s.Handle(func(Request) Answer { return a }) }

// Requests returns the completion requests, including refused ones.
func (s *Server) Requests() (all []Request) {
	s.set(func() { all = slices.Clone(s.requests) })
	return all
}

// Lists returns how often the models were listed.
func (s *Server) Lists() (n int) {
	s.set(func() { n = s.lists })
	return n
}

// Blind makes the server refuse images, as a model that cannot see.
func (s *Server) Blind() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blind = true
}

// Asked returns the requests in the words of the suite.
func (s *Server) Asked() (all []modelapitest.Asked) {
	for _, r := range s.Requests() {
		a := modelapitest.Asked{Model: r.Model, Key: r.Header.Get("X-Api-Key"), MaxTokens: r.MaxTokens}
		var roles, texts []string
		for _, b := range r.System {
			roles, texts = append(roles, "system"), append(texts, b.Text)
		}
		for _, m := range r.Messages {
			roles = append(roles, m.Role)
			for _, b := range m.Content {
				texts = append(texts, b.Text+b.Content)
				if b.Type == "image" {
					a.Images = append(a.Images, b.image())
				}
			}
		}
		a.Roles, a.Text = strings.Join(roles, " "), strings.Join(texts, "\n")
		all = append(all, a)
	}
	return all
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e := s.authorize(r); e != nil {
		e.write(w)
		return
	}
	switch {
	case r.URL.Path == "/v1/messages" && r.Method == http.MethodPost:
		s.complete(w, r)
	case r.URL.Path == "/v1/models" && r.Method == http.MethodGet:
		s.list(w)
	default:
		(&apiError{http.StatusNotFound, "not_found_error", "Not Found", ""}).write(w)
	}
}

// apiError is an error of the API.
type apiError struct {
	status        int
	kind, message string
	retryAfter    string
}

func (e *apiError) body() map[string]any {
	return map[string]any{"type": "error", "error": map[string]any{"type": e.kind, "message": e.message},
		"request_id": "req_1"}
}

func (e *apiError) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if e.retryAfter != "" {
		w.Header().Set("Retry-After", e.retryAfter)
	}
	w.WriteHeader(e.status)
	_ = json.NewEncoder(w).Encode(e.body())
}

func bad(format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "invalid_request_error", fmt.Sprintf(format, args...), ""}
}

// kinds are the types of errors by their status.
var kinds = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
	404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error",
	529: "overloaded_error",
}

func kindOf(status int) string {
	if kind := kinds[status]; kind != "" {
		return kind
	}
	return "api_error"
}

func (s *Server) authorize(r *http.Request) *apiError {
	s.mu.Lock()
	want, open := s.key, s.open
	s.mu.Unlock()
	key := r.Header.Get("X-Api-Key")
	switch {
	case r.Header.Get("Anthropic-Version") == "":
		return bad("anthropic-version: header is required")
	case r.Header.Get("Anthropic-Version") != "2023-06-01":
		return bad("anthropic-version: %q is not a valid version", r.Header.Get("Anthropic-Version"))
	case open:
		return nil
	case key == "":
		return &apiError{http.StatusUnauthorized, kindOf(401), "x-api-key header is required", ""}
	case want != "" && key != want:
		return &apiError{http.StatusUnauthorized, kindOf(401), "invalid x-api-key", ""}
	}
	return nil
}

func (s *Server) list(w http.ResponseWriter) {
	s.mu.Lock()
	s.lists++
	names, listing := slices.Clone(s.models), s.listing
	s.mu.Unlock()
	data := []map[string]any{}
	for _, name := range names {
		data = append(data, map[string]any{"type": "model", "id": name, "display_name": name,
			"created_at": "2025-01-01T00:00:00Z"})
	}
	listing.Write(w, s.closed, data, map[string]any{"has_more": false})
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 32<<20))
	if err != nil {
		(&apiError{http.StatusRequestEntityTooLarge, kindOf(413), "Request exceeds the maximum size", ""}).write(w)
		return
	}
	s.mu.Lock()
	req := Request{Header: r.Header, Raw: body, blind: s.blind}
	s.mu.Unlock()
	refusal := req.check()
	if refusal == nil && !s.knows(req.Model) {
		refusal = &apiError{http.StatusNotFound, kindOf(404), "model: " + req.Model, ""}
	}
	answer := s.take(req, refusal == nil)
	if refusal != nil {
		refusal.write(w)
		return
	}
	(&reply{server: s, w: w, r: r, request: req, answer: answer}).run()
}

func (s *Server) knows(model string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.models == nil || slices.Contains(s.models, model)
}

// take records a request and finds its answer.
func (s *Server) take(req Request, answered bool) Answer {
	s.mu.Lock()
	s.requests = append(s.requests, req)
	if answered && len(s.queue) > 0 {
		a := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		return a
	}
	handler := s.handler
	s.mu.Unlock()
	if answered && handler != nil {
		return handler(req)
	}
	return modelapitest.Fail(http.StatusBadRequest, "anthropictest: no answer is scripted for this request")
}
