package door

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes accepts the ends of pipes.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// ended sends the beginning of a request of size bytes, and pieces of its body at intervals,
// and returns the status of the answer and when the server ended the connection; 0: it did not.
func ended(t *testing.T, host, path string, size, piece int, every time.Duration) (status int, after time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := New(Options{Hosts: []string{"page"}})
		next := http.NewServeMux()
		next.HandleFunc("/hooks/read", func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				w.WriteHeader(http.StatusBadRequest)
			}
		})
		next.HandleFunc("/hooks/ignore", func(http.ResponseWriter, *http.Request) {})
		next.HandleFunc("/hooks/stream", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			for range 10 {
				time.Sleep(time.Minute)
				if r.Context().Err() != nil {
					return
				}
				_, _ = io.WriteString(w, "data: x\n\n")
				_ = http.NewResponseController(w).Flush()
			}
		})
		server := http.Server{Handler: d.Handler(next, "/hooks/")} //nolint:gosec // its clients are the test's
		p := make(pipes, 1)
		client, other := net.Pipe()
		p <- other
		go server.Serve(p) //nolint:errcheck // ends with the test
		begun := time.Now()
		answered, closed := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(closed)
			if answer, err := http.ReadResponse(bufio.NewReader(client), nil); err == nil {
				status = answer.StatusCode
				_, _ = io.Copy(io.Discard, answer.Body)
			}
			close(answered)
			_, _ = io.Copy(io.Discard, client)
		}()
		_, _ = fmt.Fprintf(client, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", path, host, size)
		for sent := 0; sent < size; sent += piece {
			time.Sleep(every)
			if _, err := client.Write(make([]byte, min(piece, size-sent))); err != nil {
				after = time.Since(begun)
				break
			}
		}
		<-answered
		if took := time.Since(begun); path == "/hooks/stream" && took < 10*time.Minute {
			t.Errorf("the stream ended after %s", took)
		}
		_ = client.Close()
		<-closed
		_ = server.Close()
	})
	return status, after
}

func TestSlowBodies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		host, path  string
		size, piece int
		every       time.Duration
		status      int
		within      time.Duration // of the end; 0: it isn't ended
	}{
		"one that trickles":         {"page", "/hooks/read", 1000, 1, 10 * time.Second, 400, time.Minute},
		"one that stalls":           {"page", "/hooks/read", 1 << 20, 1 << 19, 100 * time.Second, 400, 4 * time.Minute},
		"one that nothing reads":    {"page", "/hooks/ignore", 1000, 1, 10 * time.Second, 200, time.Minute},
		"one that is refused":       {"elsewhere", "/hooks/read", 1000, 1, 2 * time.Second, 421, 5 * time.Second},
		"a slow one":                {"page", "/hooks/read", 1 << 20, 64 << 10, 14 * time.Second, 200, 0},
		"a stream after a slow one": {"page", "/hooks/stream", 3, 1, 5 * time.Second, 200, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, after := ended(t, c.host, c.path, c.size, c.piece, c.every)
			if status != c.status {
				t.Errorf("it is answered %d, want %d", status, c.status)
			}
			if (c.within > 0) != (after > 0) || after > c.within {
				t.Errorf("it is ended after %s, want within %s", after, c.within)
			}
		})
	}
}
