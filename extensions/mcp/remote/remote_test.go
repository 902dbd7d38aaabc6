package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// host is an MCP server for tests. Before it, a test may do something else with a request.
type host struct {
	*httptest.Server
	handler atomic.Pointer[http.Handler]
	before  atomic.Pointer[func(w http.ResponseWriter, q *http.Request) bool] // true: it answered
}

func (h *host) do(f func(w http.ResponseWriter, q *http.Request) bool) { h.before.Store(&f) }

// wrap puts something before the server.
func (h *host) wrap(f func(http.Handler) http.Handler) {
	wrapped := f(*h.handler.Load())
	h.handler.Store(&wrapped)
}

func serve(t *testing.T, stateless bool) *host {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(
		_ context.Context, _ *mcp.CallToolRequest, in struct {
			Text string `json:"text"`
		},
	) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: stateless})
	h := &host{}
	var current http.Handler = handler
	h.handler.Store(&current)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if f := h.before.Load(); f != nil && (*f)(w, q) {
			return
		}
		(*h.handler.Load()).ServeHTTP(w, q)
	}))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

// open connects to a server.
func open(t *testing.T, address, version string, headers map[string]string, login *Login) (*Link, *mcp.ClientSession, error) {
	t.Helper()
	l, err := Open(address, headers, login)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { l.End(0, "the test is over") })
	x, err := mcp.NewClient(&mcp.Implementation{Name: "switchboard", Version: "1"}, nil).Connect(t.Context(), l,
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	return l, x, err
}

func echo(ctx context.Context, x *mcp.ClientSession, text string) (string, error) {
	r, err := x.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]string{"text": text}})
	if err != nil {
		return "", err
	}
	return r.Content[0].(*mcp.TextContent).Text, nil //nolint:forcetypeassert // it is one
}

func TestServersOfEachVersionAreReached(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		version   string
		stateless bool
	}{
		{"2025-03-26", false}, {"2025-06-18", false}, {"2025-11-25", false}, {"2025-11-25", true}, {"2026-07-28", true},
		{"", false}, {"", true},
	} {
		h := serve(t, tt.stateless)
		var wrong atomic.Int64
		h.do(func(_ http.ResponseWriter, q *http.Request) bool {
			if q.Header.Get("X-Key") != "secret" {
				wrong.Add(1)
			}
			return false
		})
		l, x, err := open(t, h.URL, tt.version, map[string]string{"X-Key": "secret"}, nil)
		if err != nil {
			t.Fatalf("%+v: %v", tt, err)
		}
		if got, err := echo(t.Context(), x, "hello"); got != "hello" || err != nil {
			t.Errorf("%+v: %q, %v", tt, got, err)
		}
		if err := x.Close(); err != nil {
			t.Errorf("%+v: close: %v", tt, err)
		}
		l.End(time.Second, "it was not used")
		<-l.Done()
		if n := wrong.Load(); n > 0 {
			t.Errorf("%+v: %d requests lack the header", tt, n)
		}
	}
}

func TestHeadersAreNotSentElsewhere(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(other.Close)
	h := serve(t, true)
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		h.do(func(w http.ResponseWriter, q *http.Request) bool {
			http.Redirect(w, q, other.URL+"/mcp", status)
			return true
		})
		_, _, err := open(t, h.URL, "2025-11-25", map[string]string{"Authorization": "Bearer secret"}, nil)
		if err == nil || !strings.Contains(err.Error(), "redirects") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: %v", status, err)
		}
	}
	if reached.Load() > 0 {
		t.Error("a redirect was followed to another host")
	}
	h.do(func(w http.ResponseWriter, q *http.Request) bool {
		if q.URL.Path == "/old" {
			http.Redirect(w, q, "/mcp", http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	_, x, err := open(t, h.URL+"/old", "2025-11-25", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := echo(t.Context(), x, "here"); got != "here" {
		t.Errorf("a redirect on the same host: %q, %v", got, err)
	}
}

// An error for a moment ends its call, not the session.
func TestATransientErrorEndsItsCallOnly(t *testing.T) {
	t.Parallel()
	h := serve(t, false)
	_, x, err := open(t, h.URL, "2025-11-25", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range []func(w http.ResponseWriter){
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		var once sync.Once
		h.do(func(w http.ResponseWriter, q *http.Request) bool {
			failed := false
			if q.Method == http.MethodPost {
				once.Do(func() { failed = true })
			}
			if failed {
				fault(w)
			}
			return failed
		})
		if got, err := echo(t.Context(), x, "lost"); err == nil {
			t.Errorf("a failed call: %q", got)
		}
		if got, err := echo(t.Context(), x, "again"); got != "again" || err != nil {
			t.Errorf("after it: %q, %v", got, err)
		}
	}
}

func TestAServerThatSendsTooMuchIsCutOff(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"application/json", "text/event-stream"} {
		h := serve(t, true)
		_, x, err := open(t, h.URL, "2025-11-25", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var sent atomic.Int64
		h.do(func(w http.ResponseWriter, q *http.Request) bool {
			if q.Method != http.MethodPost {
				return false
			}
			w.Header().Set("Content-Type", kind)
			_, _ = fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"")
			block := strings.Repeat("x", 1<<20)
			for range 200 {
				n, err := fmt.Fprint(w, block)
				sent.Add(int64(n))
				if err != nil {
					break
				}
			}
			return true
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if got, err := echo(ctx, x, "much"); err == nil {
			t.Errorf("%s: %d bytes", kind, len(got))
		}
		cancel()
		h.CloseClientConnections()
	}
}

// A stream that never ends is cut off by its rate.
func TestAStreamHasALimitAMinute(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	f := &flow{ReadCloser: http.NoBody, stream: true, now: func() time.Time { return now }}
	fill := func(n int) error {
		f.ReadCloser = readOnly{strings.NewReader(strings.Repeat("x", n))}
		buffer := make([]byte, 1<<20)
		for {
			k, err := f.Read(buffer)
			if k == 0 || err != nil {
				return err
			}
		}
	}
	if err := fill(maxMinute - 1); errors.Is(err, errTooMuch) {
		t.Error(err)
	}
	if err := fill(2); !errors.Is(err, errTooMuch) {
		t.Errorf("above the limit: %v", err)
	}
	now = now.Add(61 * time.Second)
	if err := fill(2); errors.Is(err, errTooMuch) {
		t.Errorf("a minute later: %v", err)
	}
}

type readOnly struct{ *strings.Reader }

func (readOnly) Close() error { return nil }

// A server that does not answer holds up neither a call nor the end of its link.
func TestAServerThatHangsIsLeft(t *testing.T) {
	t.Parallel()
	h := serve(t, false)
	l, x, err := open(t, h.URL, "2025-11-25", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	release, hanging := make(chan struct{}), make(chan struct{}, 10)
	t.Cleanup(func() { close(release) })
	h.do(func(_ http.ResponseWriter, q *http.Request) bool {
		hanging <- struct{}{}
		select {
		case <-release:
		case <-q.Context().Done():
		}
		return true
	})
	failed := make(chan error, 1)
	go func() {
		_, err := echo(t.Context(), x, "hello")
		failed <- err
	}()
	<-hanging
	closed := make(chan struct{})
	go func() {
		_ = x.Close()
		close(closed)
	}()
	l.End(0, "it does not answer")
	<-closed
	if err := <-failed; err == nil {
		t.Error("the call has a result")
	}
}

func TestAddressesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"ftp://example.com", "example.com/mcp", "https://user:pw@example.com", "http://", "%"} {
		if _, err := Open(address, nil, nil); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, tt := range []struct {
		host    string
		address string
		lan     bool
		ok      bool
	}{
		{"example.com", "93.184.216.34:443", true, true},
		{"example.com", "10.0.0.5:443", true, true}, // a name of the local network
		{"example.com", "10.0.0.5:443", false, false},
		{"example.com", "127.0.0.1:443", true, false}, // rebound
		{"example.com", "[::1]:443", true, false},
		{"example.com", "[::ffff:127.0.0.1]:443", true, false},
		{"example.com", "169.254.169.254:80", true, false},
		{"example.com", "[fe80::1]:80", true, false},
		{"example.com", "0.0.0.0:80", true, false},
		{"example.com", "100.64.0.1:80", false, false},
		{"example.com", "[fd00::1]:80", false, false},
		{"localhost", "127.0.0.1:8080", true, true},
		{"127.0.0.1", "127.0.0.1:8080", false, true},
		{"127.0.0.1", "10.0.0.5:8080", false, false},
		{"192.168.1.7", "192.168.1.7:80", false, true},
		{"192.168.1.7", "127.0.0.1:80", true, false},
		{"[::1]", "[::1]:80", true, false}, // Hostname has no brackets
		{"::1", "[::1]:80", true, true},
	} {
		if err := reachOf(tt.host).check(tt.address, tt.lan); (err == nil) != tt.ok {
			t.Errorf("%s at %s: %v", tt.host, tt.address, err)
		}
	}
}
