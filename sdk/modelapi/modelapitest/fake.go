package modelapitest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// Fake is a fake server of one kind of API. It checks requests like the real one.
type Fake interface {
	// BaseURL is the address for clients.
	BaseURL() string
	Close()
	// Queue appends answers, Always answers all requests without a queued one.
	Queue(answers ...Answer)
	Always(answer Answer)
	// RequireKey makes the server refuse other keys, NoKey none. OnlyModels makes it
	// refuse, and not list, other models.
	RequireKey(key string)
	NoKey()
	OnlyModels(names ...string)
	// Blind makes the server refuse images, as a model that cannot see.
	Blind()
	// Asked returns the completion requests, including refused ones.
	Asked() []Asked
	// Lists returns how often the models were listed, ListAs sets how they are.
	Lists() int
	ListAs(l Listing)
}

// Listing is how a server lists its models.
type Listing struct {
	// Fields are added to each model.
	Fields map[string]any
	// Status, if it is not 0, makes the list this error. Delay is the wait before it.
	Status int
	Delay  time.Duration
}

// Write answers a request for a list with these models. It stops waiting when closed is.
func (l Listing) Write(w http.ResponseWriter, closed <-chan struct{}, models []map[string]any, more map[string]any) {
	if l.Delay > 0 {
		select {
		case <-time.After(l.Delay):
		case <-closed:
			return
		}
	}
	if l.Status != 0 {
		w.WriteHeader(l.Status)
		return
	}
	for _, m := range models {
		maps.Copy(m, l.Fields)
	}
	answer := map[string]any{"data": models}
	maps.Copy(answer, more)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// Asked is one completion request.
type Asked struct {
	Key, Model string
	Roles      string // of the messages, joined by blanks
	Text       string // all texts of the messages and of results, one a line
	MaxTokens  int
	Images     []Image // of the messages
}

// Subject is what the suite tests.
type Subject struct {
	Kind  *modelapi.Kind
	Serve func(net.Listener) Fake
	// Base is the path of base URLs.
	Base string
}

const testKey = "sk-test-0123456789abcdefghij"

// keyName is the secret with the key.
const keyName = "SUITE_KEY"

// heard is the result of one completion.
type heard struct {
	text   string
	pieces int
	calls  []*busv1.Call
	finish string
	usage  *sdk.Usage
	model  string // of the first delta
	window int64  // of the last delta that has one
	deltas int
}

func (h *heard) emit(d *sdk.Delta) error {
	if h.deltas == 0 {
		h.model = d.GetModel()
	}
	h.deltas++
	if d.GetContext() > 0 {
		h.window = d.GetContext()
	}
	if d.GetText() != "" {
		h.pieces++
		h.text += d.GetText()
	}
	if d.GetCall() != nil {
		h.calls = append(h.calls, d.GetCall())
	}
	if d.GetUsage() != nil {
		h.usage = d.GetUsage()
	}
	if d.GetFinish() != "" {
		h.finish = d.GetFinish()
	}
	return nil
}

func ask(text string) *sdk.CompleteRequest {
	return &sdk.CompleteRequest{Model: "test-model", Messages: []*extensionv1.Message{{Role: "user", Content: text}}}
}

// start returns a fake on loopback.
func (s Subject) start(t *testing.T) Fake {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := s.Serve(l)
	t.Cleanup(f.Close)
	return f
}

// connect returns a client of a server, under the id local.
func (s Subject) connect(t *testing.T, c modelapi.Config, key string) *modelapi.Server {
	t.Helper()
	server, err := modelapi.NewServer(s.Kind, "local", c, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// withKey is the configuration of a server that needs a key.
func withKey(address string) modelapi.Config { return modelapi.Config{BaseURL: address, Key: keyName} }

func complete(t *testing.T, s *modelapi.Server, r *sdk.CompleteRequest) (heard, error) {
	t.Helper()
	var h heard
	err := s.Complete(t.Context(), r, h.emit)
	if err != nil && strings.Contains(err.Error(), testKey) {
		t.Errorf("the error holds the key: %v", err)
	}
	return h, err
}

func wantFailure(t *testing.T, err error, kind modelapi.FailureKind, parts ...string) {
	t.Helper()
	f := (*modelapi.Failure)(nil)
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a failure", err)
	}
	if f.Kind != kind {
		t.Errorf("kind %d of %q, want %d", f.Kind, f, kind)
	}
	for _, part := range parts {
		if !strings.Contains(f.Error(), part) {
			t.Errorf("%q does not say %q", f, part)
		}
	}
}

// pipes is a listener in memory, for tests with fake time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, io.EOF
	}
}

func (l *pipes) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe.test:80" }

func (l *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errors.New("connection refused")}
	}
}

// inMemory returns a fake and a client with the time of the bubble. Both must be closed
// before the bubble ends.
func (s Subject) inMemory(t *testing.T, c modelapi.Config) (Fake, *modelapi.Server, func()) {
	t.Helper()
	l := newPipes()
	f := s.Serve(l)
	c.BaseURL, c.Key = "http://pipe.test"+s.Base, keyName
	server, err := modelapi.NewServer(s.Kind, "local", c, testKey)
	if err != nil {
		t.Fatal(err)
	}
	server.Transport().DialContext = l.dial
	return f, server, func() {
		server.Close()
		f.Close()
	}
}
