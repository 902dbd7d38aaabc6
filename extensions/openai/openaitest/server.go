// Package openaitest is a server on loopback with OpenAI's chat completions API
// and scripted answers. It serves POST /v1/chat/completions, with and without a
// stream, GET /v1/models, and POST /v1/audio/transcriptions.
//
// It checks requests like the real API (known roles, required contents, a result
// for each tool call, tool schemas that are objects) and refuses invalid ones
// with the same errors, so that a client that works here sends valid requests. It
// only estimates token counts, and ignores sampling parameters.
//
// An answer comes from the queue of the request's model, else from the queue of
// all models, else from the handler of the model, else from the common handler;
// without any, the request is refused. A Server is safe for concurrent use. It
// keeps the newest 10,000 requests; Keep changes that.
package openaitest

import (
	"context"
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

// Server is one running server.
type Server struct {
	// URL is the server's address, without a path.
	URL string

	http       *http.Server
	closed     chan struct{}
	closing    sync.Once
	mu         sync.Mutex
	key        string
	noKey      bool
	blind      bool // images are refused
	models     []string
	lists      int
	listing    modelapitest.Listing
	own        map[string]http.HandlerFunc // by path
	common     script
	listener   listener
	byModel    map[string]*script
	requests   []Request
	keep       int
	total      int
	running    int
	maxRunning int
	schemas    map[string]error
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

// Serve returns a server that accepts connections from l. Close closes l.
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

// TB is the part of testing.TB that New uses.
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

// BaseURL returns the value for OPENAI_BASE_URL.
func (s *Server) BaseURL() string { return s.URL + "/v1" }

// Close stops the server and closes all connections.
func (s *Server) Close() {
	s.closing.Do(func() {
		close(s.closed)
		_ = s.http.Close()
	})
}

// RequireKey makes the server refuse other keys. By default it accepts any key
// that is not empty.
func (s *Server) RequireKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.noKey = key, false
}

// NoKey makes the server accept requests without a key.
func (s *Server) NoKey() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noKey = true
}

// Lists returns how often the models were listed.
func (s *Server) Lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

// ListAs sets how the models are listed.
func (s *Server) ListAs(l modelapitest.Listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing = l
}

// OnlyModels makes the server refuse other models. By default every model exists.
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

// Handle sets the handler of requests without a queued answer. f runs
// concurrently.
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

// Keep sets the number of requests to keep.
func (s *Server) Keep(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep = n
}

// Requests returns the kept completion requests, including refused ones.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Total returns the number of completion requests.
func (s *Server) Total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Left returns the number of queued answers that are not used yet.
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
	case r.URL.Path == "/v1/audio/transcriptions" && r.Method == http.MethodPost:
		s.hear(w, r)
	case s.ownAPI(r.URL.Path) != nil:
		s.ownAPI(r.URL.Path)(w, r)
	default:
		(&apiError{status: http.StatusNotFound, Type: invalidRequest,
			Message: fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path)}).write(w)
	}
}

// ownAPI returns the handler of a path of an API of its own; nil: it has none.
func (s *Server) ownAPI(path string) http.HandlerFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own[path]
}

func (s *Server) authorize(r *http.Request) *apiError {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	want, open := s.key, s.noKey
	s.mu.Unlock()
	switch {
	case open:
		return nil
	case !ok || key == "":
		return &apiError{status: http.StatusUnauthorized, Type: invalidRequest,
			Message: "You didn't provide an API key. You need to provide your API key in an Authorization header " +
				"using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."}
	case want != "" && key != want:
		return &apiError{status: http.StatusUnauthorized, Type: invalidRequest, Code: "invalid_api_key",
			Message: "Incorrect API key provided: " + mask(key) +
				". You can find your API key at https://platform.openai.com/account/api-keys."}
	}
	return nil
}

// mask shows the ends of a key, like the real API.
func mask(key string) string {
	if len(key) <= 12 {
		return strings.Repeat("*", len(key))
	}
	return key[:8] + strings.Repeat("*", len(key)-12) + key[len(key)-4:]
}

func (s *Server) listModels(w http.ResponseWriter) {
	s.mu.Lock()
	s.lists++
	names, listing := slices.Clone(s.models), s.listing
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
	listing.Write(w, s.closed, data, map[string]any{"object": "list"})
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 32<<20))
	if err != nil {
		(&apiError{status: http.StatusRequestEntityTooLarge, Type: invalidRequest,
			Message: "request too large"}).write(w)
		return
	}
	req := Request{Header: r.Header, Raw: body}
	refusal := s.check(&req)
	answer, number := s.take(req, refusal == nil)
	if refusal != nil {
		refusal.write(w)
		return
	}
	ending := s.begin()
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
