package ownuser

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func listen(t *testing.T, refused func(int)) (l *Listener, dial func() net.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	raw, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l = Listen(raw, refused)
	t.Cleanup(func() { _ = l.Close() })
	return l, func() net.Conn {
		t.Helper()
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

func (l *Listener) accept(t *testing.T) *Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*Conn)
}

// ended reports whether the other side has closed a connection.
func ended(c net.Conn) bool {
	_, err := io.ReadFull(c, make([]byte, 1))
	return err != nil
}

func TestTooManyUnauthenticatedConnectionsEvictTheOldest(t *testing.T) {
	t.Parallel()
	l, dial := listen(t, nil)
	authenticated, oldest := dial(), dial()
	first := l.accept(t)
	first.Authenticated()
	l.accept(t)
	for range maxPending {
		dial()
		l.accept(t)
	}
	if !ended(oldest) {
		t.Error("the oldest unauthenticated connection is still open")
	}
	if _, err := first.Write([]byte("x")); err != nil || ended(authenticated) {
		t.Errorf("the authenticated connection was closed: %v", err)
	}
	if len(l.pending) != maxPending {
		t.Errorf("%d unauthenticated connections, want %d", len(l.pending), maxPending)
	}
}

func TestAnotherUserIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	l, dial := listen(t, nil)
	reason := errors.New("another user")
	refusals := 1
	l.Check = func(c net.Conn) (int, error) {
		if refusals--; refusals >= 0 {
			return 0, reason
		}
		return Check(c)
	}
	l.Foreign = func(c net.Conn, err error) { _, _ = io.WriteString(c, err.Error()) }
	foreign, own := dial(), dial()
	if c := l.accept(t); c.pid != os.Getpid() {
		t.Errorf("process %d is accepted", c.pid)
	}
	if got, err := io.ReadAll(foreign); string(got) != reason.Error() || err != nil {
		t.Errorf("the other user gets %q, %v", got, err)
	}
	_ = own.Close()
}

func TestTheProcessWithMostConnectionsLosesItsOldest(t *testing.T) {
	t.Parallel()
	l := Listen(nil, nil)
	modest := &Conn{l: l, pid: 1}
	l.pending = []*Conn{modest, {l: l, pid: 2}, {l: l, pid: 3}, {l: l, pid: 2}}
	if got := l.victim(); got != l.pending[1] {
		t.Errorf("process %d loses", got.pid)
	}
}

// flood is a listener that always has a new connection to accept.
type flood struct{ net.Listener }

func (flood) Accept() (net.Conn, error) {
	near, far := net.Pipe()
	_ = far.Close()
	return near, nil
}

func TestAProcessThatConnectsTooOftenIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		l := Listen(flood{}, func(int) { refused++ })
		l.Check = func(net.Conn) (int, error) { return 7, nil }
		for range maxConnects {
			l.accept(t)
		}
		if refused > 0 {
			t.Fatalf("%d connections within the limit were refused", refused)
		}
		began := time.Now()
		l.accept(t)
		if took := time.Since(began); refused == 0 || took < connectWindow {
			t.Errorf("the next one was accepted %s later, after %d refusals", took, refused)
		}
		if !l.allows(8) {
			t.Error("another process is refused")
		}
	})
}
