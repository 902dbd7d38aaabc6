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

// ended says that the other side has closed a connection.
func ended(c net.Conn) bool {
	_, err := io.ReadFull(c, make([]byte, 1))
	return err != nil
}

func TestStrangersAreBoundedAndThoseWhoAreKnownStay(t *testing.T) {
	t.Parallel()
	l, dial := listen(t, nil)
	known, oldest := dial(), dial()
	first := l.accept(t)
	first.Known()
	l.accept(t)
	for range maxStrangers {
		dial()
		l.accept(t)
	}
	if !ended(oldest) {
		t.Error("the oldest stranger is still there")
	}
	if _, err := first.Write([]byte("x")); err != nil || ended(known) {
		t.Errorf("who is known was sent away: %v", err)
	}
	if len(l.strangers) != maxStrangers {
		t.Errorf("there are %d strangers", len(l.strangers))
	}
}

func TestAnotherUserHearsWhyAndIsSentAway(t *testing.T) {
	t.Parallel()
	l, dial := listen(t, nil)
	reason := errors.New("another user")
	strangers := 1
	l.Check = func(c net.Conn) (int, error) {
		if strangers--; strangers >= 0 {
			return 0, reason
		}
		return Check(c)
	}
	l.Foreign = func(c net.Conn, err error) { _, _ = io.WriteString(c, err.Error()) }
	foreign, own := dial(), dial()
	if c := l.accept(t); c.pid != os.Getpid() {
		t.Errorf("process %d is let in", c.pid)
	}
	if heard, err := io.ReadAll(foreign); string(heard) != reason.Error() || err != nil {
		t.Errorf("the other user hears %q, %v", heard, err)
	}
	_ = own.Close()
}

func TestTheGreediestProcessLoses(t *testing.T) {
	t.Parallel()
	l := Listen(nil, nil)
	modest := &Conn{l: l, pid: 1}
	l.strangers = []*Conn{modest, {l: l, pid: 2}, {l: l, pid: 3}, {l: l, pid: 2}}
	if got := l.greediest(); got != l.strangers[1] {
		t.Errorf("process %d loses", got.pid)
	}
}

// crowd is a listener to which somebody connects as often as it accepts.
type crowd struct{ net.Listener }

func (crowd) Accept() (net.Conn, error) {
	near, far := net.Pipe()
	_ = far.Close()
	return near, nil
}

func TestWhoConnectsWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		l := Listen(crowd{}, func(int) { refused++ })
		l.Check = func(net.Conn) (int, error) { return 7, nil }
		for range mostIn {
			l.accept(t)
		}
		if refused > 0 {
			t.Fatalf("%d connections were refused that may be there", refused)
		}
		began := time.Now()
		l.accept(t)
		if took := time.Since(began); refused == 0 || took < within {
			t.Errorf("the next one comes %s later, and %d were refused", took, refused)
		}
		if !l.allows(8) {
			t.Error("another process is refused, too")
		}
	})
}
