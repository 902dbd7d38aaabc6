package openai

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/sdk"
)

const testKey = "sk-test-0123456789abcdefghij"

// heard is the result of one completion.
type heard struct {
	text   string
	pieces int
	calls  []*busv1.Call
	finish string
	usage  *sdk.Usage
	model  string // of the first delta
	deltas int
}

func (h *heard) emit(d *sdk.Delta) error {
	if h.deltas == 0 {
		h.model = d.GetModel()
	}
	h.deltas++
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
	return &sdk.CompleteRequest{Model: "gpt-test", Messages: []*extensionv1.Message{{Role: "user", Content: text}}}
}

// connect returns a provider for the server.
func connect(tb testing.TB, c Config) *provider {
	tb.Helper()
	c.Key = KeyName
	p, err := newProvider(ID, c, testKey)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.close)
	return p
}

func complete(t *testing.T, p *provider, r *sdk.CompleteRequest) (heard, error) {
	t.Helper()
	var h heard
	err := p.complete(t.Context(), r, h.emit)
	if err != nil && strings.Contains(err.Error(), testKey) {
		t.Errorf("the error holds the key: %v", err)
	}
	return h, err
}

func wantFailure(t *testing.T, err error, kind Kind, parts ...string) {
	t.Helper()
	f := (*Failure)(nil)
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

// inMemory returns a server and a provider with the time of the bubble. Both must
// be closed before the bubble ends.
func inMemory(t *testing.T, c Config) (*openaitest.Server, *provider, func()) {
	t.Helper()
	l := newPipes()
	s := openaitest.Serve(l)
	c.BaseURL, c.Key = "http://pipe.test/v1", KeyName
	p, err := newProvider(ID, c, testKey)
	if err != nil {
		t.Fatal(err)
	}
	p.http.client.HTTPClient.Transport.(*http.Transport).DialContext = l.dial
	return s, p, func() {
		p.close()
		s.Close()
	}
}

// reports records readiness.
type reports struct {
	mu     sync.Mutex
	states []string
}

func (r *reports) set(s extensionv1.Readiness_State, detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = append(r.states, strings.TrimSpace(strings.ToLower(strings.TrimPrefix(s.String(), "STATE_"))+" "+detail))
}

func (r *reports) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.states) == 0 {
		return ""
	}
	return r.states[len(r.states)-1]
}

func silent() hclog.Logger { return hclog.NewNullLogger() }
