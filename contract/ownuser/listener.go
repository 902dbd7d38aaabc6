package ownuser

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxPending is the number of connections that may be unauthenticated.
	maxPending = 128
	// maxConnects is how often one process may connect within connectWindow.
	maxConnects   = 400
	connectWindow = 2 * time.Second
	// After pauseAfter refused connections in a row, Accept pauses, so that a process
	// that connects in a loop does not keep it busy. Other connections wait in the
	// socket's backlog.
	pauseAfter = 64
	pause      = 2 * time.Millisecond
	// maxProcesses is the number of processes whose connections are counted.
	maxProcesses = 1024
)

// Listener accepts only connections of its own user. No process can lock out the
// others: one that connects too often is refused, and when too many connections are
// unauthenticated, the process with most of them loses its oldest.
type Listener struct {
	net.Listener
	// Check returns the process at the other end, or why the connection is refused.
	Check func(net.Conn) (pid int, err error)
	// Refused is called with each process that connects too often; may be nil.
	Refused func(pid int)
	// Foreign is called with a connection that Check refuses, before it is closed;
	// may be nil.
	Foreign func(c net.Conn, reason error)
	// MaxUnread is how many bytes a connection may bring without a complete message, see
	// Complete; 0: any number. Overrun is called with the first that brings more, before
	// it is closed, and returns the error of its Read.
	MaxUnread int64
	Overrun   func() error

	mu      sync.Mutex
	pending []*Conn // unauthenticated, the oldest first
	counts  map[int]count
}

// count is the number of a process's connections since a time.
type count struct {
	n     int
	since time.Time
}

// Listen wraps the listener of a unix socket.
func Listen(l net.Listener, refused func(pid int)) *Listener {
	return &Listener{Listener: l, Check: Check, Refused: refused, counts: map[int]count{}}
}

// Conn is a connection, at first unauthenticated.
type Conn struct {
	net.Conn
	l      *Listener
	pid    int
	unread atomic.Int64
}

// Accept implements net.Listener. It returns a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	for refused := 1; ; refused++ {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		switch pid, err := l.Check(c); {
		case err != nil:
			if l.Foreign != nil {
				l.Foreign(c, err)
			}
		case l.allows(pid):
			return l.admit(&Conn{Conn: c, l: l, pid: pid}), nil
		case l.Refused != nil:
			l.Refused(pid)
		}
		_ = c.Close()
		if refused%pauseAfter == 0 {
			time.Sleep(pause)
		}
	}
}

// allows counts a connection of a process and reports whether it is within the limit.
func (l *Listener) allows(pid int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts[pid]
	if now := time.Now(); now.Sub(c.since) > connectWindow {
		if len(l.counts) >= maxProcesses {
			clear(l.counts)
		}
		c = count{since: now}
	}
	c.n++
	l.counts[pid] = c
	return c.n <= maxConnects
}

func (l *Listener) admit(c *Conn) *Conn {
	l.mu.Lock()
	var evicted *Conn
	if l.pending = append(l.pending, c); len(l.pending) > maxPending {
		evicted = l.victim()
	}
	l.mu.Unlock()
	if evicted != nil {
		_ = evicted.Close()
	}
	return c
}

// victim returns the oldest unauthenticated connection of the process that has most
// of them. The caller holds l.mu.
func (l *Listener) victim() (v *Conn) {
	held := map[int]int{}
	for _, c := range l.pending {
		held[c.pid]++
	}
	for _, c := range l.pending {
		if v == nil || held[c.pid] > held[v.pid] {
			v = c
		}
	}
	return v
}

// Authenticated marks the connection as authenticated, so that the listener no
// longer closes it in favor of others.
func (c *Conn) Authenticated() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.l.pending = slices.DeleteFunc(c.l.pending, func(p *Conn) bool { return p == c })
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.l.MaxUnread > 0 && c.unread.Add(int64(n)) > c.l.MaxUnread {
		err = c.l.Overrun()
		_ = c.Close()
		return 0, err
	}
	return n, err
}

// Each message was this much larger on the connection, at most: headers of frames and
// requests, and control frames of the transport.
const (
	headOfMessage = 1 << 10
	headsOfFrames = 64 // a part of the message
)

// Complete subtracts a message of n bytes that was read.
func (c *Conn) Complete(n int) {
	most := int64(n + n/headsOfFrames + headOfMessage)
	for done := false; !done; {
		now := c.unread.Load()
		done = c.unread.CompareAndSwap(now, max(0, now-most))
	}
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.Authenticated()
	return c.Conn.Close()
}
