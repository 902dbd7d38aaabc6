package connections_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/extensions/webchannel/connections"
)

const limit = 8

// serve returns the address of a server of an endless stream and short answers.
func serve(t *testing.T, secured bool) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/short", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "short\n") })
	s := httptest.NewUnstartedServer(mux)
	l := connections.Limit(s.Listener, limit)
	s.Listener, s.Config.ConnState = l, l.State
	if secured {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func dial(t *testing.T, s *httptest.Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask requests a path and returns the first line of the answer's body.
func ask(t *testing.T, c net.Conn, path string) string {
	t.Helper()
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	line, err := bufio.NewReader(answer.Body).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return line
}

// Connections that say nothing, and idle ones, make room for new ones; streams stay.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	s := serve(t, false)
	streams := []net.Conn{dial(t, s), dial(t, s)}
	for _, c := range streams {
		ask(t, c, "/stream")
	}
	idle := dial(t, s)
	ask(t, idle, "/short")
	var silent []net.Conn
	for range 20 * limit {
		silent = append(silent, dial(t, s))
	}
	if got := ask(t, dial(t, s), "/short"); got != "short\n" {
		t.Fatalf("a new client gets %q", got)
	}
	for _, c := range append(silent[:len(silent)-limit], idle) { // they are closed, not only forgotten
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Fatal("a connection that made room has an answer")
		}
	}
	for _, c := range streams {
		_ = c.SetReadDeadline(time.Now())
		if _, err := c.Read(make([]byte, 64)); !errors.Is(err, os.ErrDeadlineExceeded) && err != nil {
			t.Errorf("a stream ended: %v", err)
		}
	}
}

// While all connections are streams, a new one waits for the first that ends.
func TestNewConnectionsWaitForStreams(t *testing.T) {
	t.Parallel()
	s := serve(t, false)
	var streams []net.Conn
	for range limit {
		c := dial(t, s)
		ask(t, c, "/stream")
		streams = append(streams, c)
	}
	done := make(chan string)
	c := dial(t, s)
	go func() { done <- ask(t, c, "/short") }()
	_ = streams[0].Close()
	if got := <-done; got != "short\n" {
		t.Fatalf("the one that waited gets %q", got)
	}
	waits := dial(t, s) // closes the idle one
	ask(t, waits, "/stream")
	dial(t, s)
	s.CloseClientConnections()
}

func TestIdleConnectionsWithTLSMakeRoom(t *testing.T) {
	t.Parallel()
	s := serve(t, true)
	for range 5 * limit {
		client := s.Client()
		client.Transport = client.Transport.(*http.Transport).Clone() //nolint:forcetypeassert // httptest's
		answer, err := client.Get(s.URL + "/short")                   //nolint:noctx // of this process
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
}

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

// A client that doesn't read loses its connection, one that reads slowly does not.
func TestAClientThatTakesNothingIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := make(pipes, 1)
		client, server := net.Pipe()
		p <- server
		c, err := connections.Limit(p, 1).Accept()
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			_, err := c.Write(make([]byte, 1<<20))
			ended <- err
		}()
		buffer := make([]byte, 64<<10)
		for range 8 {
			time.Sleep(50 * time.Second)
			if _, err := io.ReadFull(client, buffer); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the write ended with %v", err)
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("the write ended after %s", took)
		}
	})
}
