package ownuser

import (
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// maxStrangers is how many connections there may be on which nobody has shown
	// yet that they may be there.
	maxStrangers = 128
	// mostIn is how often a process may connect in such a time.
	mostIn = 400
	within = 2 * time.Second
	// After so many connections that were refused, the listener rests, so that a
	// process that connects without end does not keep it busy; others wait in the
	// queue of the socket for that long.
	restAfter = 64
	rest      = 2 * time.Millisecond
	// maxProcesses is of how many processes it is remembered how often they
	// connect.
	maxProcesses = 1024
)

// Listener accepts connections of the own user alone. However often a process
// connects, others can: it is refused when it does so all the time, and when
// there are too many strangers, the process that has most of them loses its
// oldest.
type Listener struct {
	net.Listener
	// Check says which process is at the other end, or why it may not be there.
	Check func(net.Conn) (pid int, err error)
	// Refused is told which process connects too often; nil: nobody.
	Refused func(pid int)
	// Foreign is told of a connection that Check refuses, before it is closed;
	// nil: nobody.
	Foreign func(c net.Conn, reason error)

	mu        sync.Mutex
	strangers []*Conn // the oldest first
	counts    map[int]count
}

// count is how often a process has connected since a time.
type count struct {
	n     int
	since time.Time
}

// Listen makes a Listener of another one, of a unix socket.
func Listen(l net.Listener, refused func(pid int)) *Listener {
	return &Listener{Listener: l, Check: Check, Refused: refused, counts: map[int]count{}}
}

// Conn is a connection, at first a stranger's.
type Conn struct {
	net.Conn
	l   *Listener
	pid int
}

// Accept implements net.Listener. What it returns is a *Conn.
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
			return l.admit(&Conn{c, l, pid}), nil
		case l.Refused != nil:
			l.Refused(pid)
		}
		_ = c.Close()
		if refused%restAfter == 0 {
			time.Sleep(rest)
		}
	}
}

// allows says whether a process may connect once more.
func (l *Listener) allows(pid int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts[pid]
	if now := time.Now(); now.Sub(c.since) > within {
		if len(l.counts) >= maxProcesses {
			clear(l.counts)
		}
		c = count{since: now}
	}
	c.n++
	l.counts[pid] = c
	return c.n <= mostIn
}

func (l *Listener) admit(c *Conn) *Conn {
	l.mu.Lock()
	var out *Conn
	if l.strangers = append(l.strangers, c); len(l.strangers) > maxStrangers {
		out = l.greediest()
	}
	l.mu.Unlock()
	if out != nil {
		_ = out.Close()
	}
	return c
}

// greediest is the oldest stranger of the process that has most of them. The
// caller holds l.mu.
func (l *Listener) greediest() (out *Conn) {
	of := map[int]int{}
	for _, c := range l.strangers {
		of[c.pid]++
	}
	for _, c := range l.strangers {
		if out == nil || of[c.pid] > of[out.pid] {
			out = c
		}
	}
	return out
}

// Known says that whoever is on the connection has shown that they may be there.
func (c *Conn) Known() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.l.strangers = slices.DeleteFunc(c.l.strangers, func(s *Conn) bool { return s == c })
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.Known()
	return c.Conn.Close()
}
