// Package openaitest is a server on loopback that speaks the chat completions
// API of OpenAI, with scripted answers. It serves POST /v1/chat/completions,
// streamed and whole, and GET /v1/models.
//
// It checks requests as the real API does (each tool call of an assistant
// message is followed by its result, known roles, contents where they are due,
// schemas of tools that are objects) and refuses what the real one refuses,
// with the same shape of error, so a client that works here has said nothing
// there that would be turned down. It does not count tokens as a real
// tokenizer does, and ignores sampling parameters.
//
// Answers are taken from the queue of the request's model, then from the queue
// for all models, then from the handler of the model, then from the common
// handler; without any the request is refused. A Server is safe for concurrent
// use. It keeps the newest requests, 10,000 unless Keep says otherwise.
package openaitest

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
)

// Server is one running server.
type Server struct {
	// URL is the server's address, without a path.
	URL string

	http     *http.Server
	closed   chan struct{}
	closing  sync.Once
	mu       sync.Mutex
	key      string
	models   []string
	common   script
	byModel  map[string]*script
	requests []Request
	keep     int
	total    int
	running  int
	most     int // running at once
	schemas  map[string]error
}

type script struct {
	queue   []Answer
	handler func(Request) Answer
}

// Start returns a server that listens on a free port of loopback.
func Start() (*Server, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for openaitest: %w", err)
	}
	return Serve(l), nil
}

// Serve returns a server that accepts connections from l, which it closes.
func Serve(l net.Listener) *Server {
	s := &Server{
		URL:     "http://" + l.Addr().String(),
		closed:  make(chan struct{}),
		byModel: map[string]*script{},
		keep:    10_000,
		schemas: map[string]error{},
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(l) }()
	return s
}

// TB is what New needs of a test or benchmark.
type TB interface {
	Helper()
	Fatal(args ...any)
	Cleanup(func())
}

// New starts a server that is closed when the test ends.
func New(t TB) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// BaseURL is what OPENAI_BASE_URL is set to.
func (s *Server) BaseURL() string { return s.URL + "/v1" }

// Close ends the server and every connection.
func (s *Server) Close() {
	s.closing.Do(func() {
		close(s.closed)
		_ = s.http.Close()
	})
}

// RequireKey refuses every other key. Without it any key that is not empty is good.
func (s *Server) RequireKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

// OnlyModels refuses every other model. Without it every model exists.
func (s *Server) OnlyModels(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = names
}

// Queue appends answers for requests of any model.
func (s *Server) Queue(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.common.queue = append(s.common.queue, answers...)
}

// QueueFor appends answers for requests of one model.
func (s *Server) QueueFor(model string, answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script(model).queue = append(s.script(model).queue, answers...)
}

// Handle answers what no queue answers. f runs concurrently.
func (s *Server) Handle(f func(Request) Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.common.handler = f
}

// HandleFor is Handle for the requests of one model.
func (s *Server) HandleFor(model string, f func(Request) Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script(model).handler = f
}

func (s *Server) script(model string) *script {
	if s.byModel[model] == nil {
		s.byModel[model] = &script{}
	}
	return s.byModel[model]
}

// Keep sets how many of the newest requests are kept: 0 for none.
func (s *Server) Keep(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep = n
}

// Requests returns the completion requests so far, refused ones included.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Total is the number of completion requests so far.
func (s *Server) Total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Left is the number of queued answers that nobody has asked for.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.common.queue)
	for _, sc := range s.byModel {
		n += len(sc.queue)
	}
	return n
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e := s.authorize(r); e != nil {
		e.write(w)
		return
	}
	switch {
	case r.URL.Path == "/v1/chat/completions" && r.Method == http.MethodPost:
		s.complete(w, r)
	case r.URL.Path == "/v1/models" && r.Method == http.MethodGet:
		s.listModels(w)
	default:
		(&apiError{status: http.StatusNotFound, Type: invalidRequest,
			Message: fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path)}).write(w)
	}
}

func (s *Server) authorize(r *http.Request) *apiError {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	want := s.key
	s.mu.Unlock()
	switch {
	case !ok || key == "":
		return &apiError{status: http.StatusUnauthorized, Type: invalidRequest,
			Message: "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."}
	case want != "" && key != want:
		return &apiError{status: http.StatusUnauthorized, Type: invalidRequest, Code: "invalid_api_key",
			Message: "Incorrect API key provided: " + mask(key) + ". You can find your API key at https://platform.openai.com/account/api-keys."}
	}
	return nil
}

// mask shows the ends of a key, as the real API does.
func mask(key string) string {
	if len(key) <= 12 {
		return strings.Repeat("*", len(key))
	}
	return key[:8] + strings.Repeat("*", len(key)-12) + key[len(key)-4:]
}

func (s *Server) listModels(w http.ResponseWriter) {
	s.mu.Lock()
	names := slices.Clone(s.models)
	for m := range s.byModel {
		if !slices.Contains(names, m) {
			names = append(names, m)
		}
	}
	s.mu.Unlock()
	slices.Sort(names)
	data := make([]map[string]any, len(names))
	for i, n := range names {
		data[i] = map[string]any{"id": n, "object": "model", "created": 0, "owned_by": "openaitest"}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 32<<20))
	if err != nil {
		(&apiError{status: http.StatusRequestEntityTooLarge, Type: invalidRequest, Message: "request too large"}).write(w)
		return
	}
	req := Request{Header: r.Header, Raw: body}
	refusal := s.check(&req)
	answer, number := s.take(req, refusal == nil)
	if refusal != nil {
		refusal.write(w)
		return
	}
	ending := s.underway()
	defer ending()
	(&reply{server: s, w: w, r: r, request: req, answer: answer, number: number, ending: ending}).run()
}

// take records a request and finds its answer.
func (s *Server) take(req Request, answered bool) (Answer, int) {
	s.mu.Lock()
	s.total++
	number := s.total
	s.requests = append(s.requests, req)
	if over := len(s.requests) - s.keep; over > 0 {
		s.requests = slices.Delete(s.requests, 0, over)
	}
	var handler func(Request) Answer
	if answered {
		own := s.byModel[req.Model]
		for _, sc := range []*script{own, &s.common} {
			if sc != nil && len(sc.queue) > 0 {
				a := sc.queue[0]
				sc.queue = sc.queue[1:]
				s.mu.Unlock()
				return a, number
			}
		}
		if handler = s.common.handler; own != nil && own.handler != nil {
			handler = own.handler
		}
	}
	s.mu.Unlock()
	if handler != nil {
		return handler(req), number
	}
	return Fail(http.StatusBadRequest, fmt.Sprintf("openaitest: no answer is scripted for request %d", number)), number
}
