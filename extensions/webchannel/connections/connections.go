// Package connections bounds what clients can hold of a server: how many connections, and for
// how long one that takes nothing.
//
// # Promises
//
//   - There are never more connections than the limit. When it is reached, a new connection
//     replaces the one that has waited longest without a request; one with a request is never
//     replaced, so streams last.
//   - A client that doesn't read loses its connection: each piece of an answer is taken in time,
//     or the connection ends.
//
// A Listener is safe for concurrent use.
package connections

import (
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	takeWithin = time.Minute // for each piece of an answer
	piece      = 64 << 10    // bytes
)

// Listener accepts a limited number of connections. The server must call State for each
// change of a connection's state: http.Server.ConnState.
type Listener struct {
	net.Listener
	limit int

	mu      sync.Mutex
	open    map[*conn]struct{}
	changed chan struct{} // closed at the next change of a connection
	count   uint64        // changes to waiting, for their order
	closed  bool
}

// Limit returns a listener with at most limit connections.
func Limit(l net.Listener, limit int) *Listener {
	return &Listener{Listener: l, limit: limit, open: map[*conn]struct{}{}, changed: make(chan struct{})}
}

// Accept accepts a connection and makes room for it. While all others have requests, it waits.
func (l *Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for {
		l.mu.Lock()
		switch {
		case l.closed:
			l.mu.Unlock()
			_ = accepted.Close()
			return nil, net.ErrClosed
		case len(l.open) < l.limit:
			l.count++
			c := &conn{Conn: accepted, of: l, waits: l.count}
			l.open[c] = struct{}{}
			l.mu.Unlock()
			return c, nil
		}
		oldest, changed := l.oldest(), l.changed
		l.mu.Unlock()
		if oldest != nil {
			_ = oldest.Close()
		} else {
			<-changed
		}
	}
}

// oldest returns the connection that has waited longest without a request; nil: all have one.
func (l *Listener) oldest() (first *conn) {
	for c := range l.open {
		if c.waits > 0 && (first == nil || c.waits < first.waits) {
			first = c
		}
	}
	return first
}

// Close closes the listener, not its connections.
func (l *Listener) Close() error {
	err := l.Listener.Close()
	l.change(func() { l.closed = true })
	return err
}

func (l *Listener) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	close(l.changed)
	l.changed = make(chan struct{})
}

// State follows the state of a connection.
func (l *Listener) State(of net.Conn, state http.ConnState) {
	if secured, ok := of.(interface{ NetConn() net.Conn }); ok { // TLS
		of = secured.NetConn()
	}
	c, ok := of.(*conn)
	if !ok {
		return
	}
	l.change(func() {
		switch state {
		case http.StateIdle:
			l.count++
			c.waits = l.count
		case http.StateActive:
			c.waits = 0
		case http.StateNew, http.StateClosed, http.StateHijacked: // Accept and Close know
		}
	})
}

// conn is an open connection.
type conn struct {
	net.Conn
	of    *Listener
	waits uint64 // since which change it has no request; 0: it has one
}

// Write writes in pieces, each with a deadline.
func (c *conn) Write(p []byte) (n int, err error) {
	for {
		if err := c.SetWriteDeadline(time.Now().Add(takeWithin)); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(p[n:min(n+piece, len(p))])
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

// Close closes the connection and makes room for another.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.of.change(func() { delete(c.of.open, c) })
	return err
}
