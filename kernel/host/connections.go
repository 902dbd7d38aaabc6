package host

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract/ownuser"
	"github.com/switchboard-run/switchboard/kernel/bus"
)

// connections are those that a listener accepts, each with its meter.
type connections struct {
	*ownuser.Listener
	d       *admission
	control bool
}

// listen accepts connections of extensions, or, for control, of the owner.
func (d *admission) listen(l net.Listener, control bool) connections {
	own := ownuser.Listen(l, func(pid int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		_ = d.refuse("", fmt.Sprintf("process %d connects too often", pid))
	})
	own.Check = d.checkUser
	return connections{own, d, control}
}

// Accept implements net.Listener.
func (l connections) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &meteredConn{Conn: c.(*ownuser.Conn), d: l.d, control: l.control}, nil
}

// know notes whose connection a request came by. The caller holds d.mu.
func (d *admission) know(ctx context.Context, a *bus.Actor) error {
	c := connOf(ctx)
	if c == nil || c.owner != nil {
		return nil
	}
	if d.connected[a] >= d.connections && a != owner {
		return d.refuse(a.ID, fmt.Sprintf("it has %d connections to the kernel, which is the most there can be", d.connections))
	}
	d.connected[a]++
	c.owner = a
	c.Authenticated()
	return nil
}

// meteredConn counts what was read from it and is in no complete request yet.
type meteredConn struct {
	*ownuser.Conn
	d       *admission
	control bool       // the owner's
	owner   *bus.Actor // whose token was shown on it first; guarded by d.mu
	closed  sync.Once

	mu      sync.Mutex
	unread  int64
	forgave time.Time
}

// Read implements net.Conn.
func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	c.unread += int64(n)
	over := c.unread > c.d.unread
	c.mu.Unlock()
	if over {
		c.d.mu.Lock()
		reason := c.d.refuse("", fmt.Sprintf("a connection was ended: it sent %d MiB of requests that were not complete", c.d.unread>>20))
		c.d.mu.Unlock()
		_ = c.Close()
		return 0, reason
	}
	return n, err
}

// Each message has been this much larger on its way, at the most: heads of frames
// and requests. What the transport says to itself is forgiven over time.
const (
	headOfMessage   = 1 << 10
	headsOfFrames   = 64 // a part of the message
	forgiven        = 1 << 20
	forgiveInterval = time.Minute
)

// complete takes a message off that was read.
func (c *meteredConn) complete(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread = max(0, c.unread-int64(n+n/headsOfFrames+headOfMessage))
	if now := time.Now(); now.Sub(c.forgave) > forgiveInterval {
		c.unread, c.forgave = max(0, c.unread-forgiven), now
	}
}

// Close implements net.Conn.
func (c *meteredConn) Close() error {
	c.closed.Do(func() {
		c.d.mu.Lock()
		defer c.d.mu.Unlock()
		if c.owner == nil {
			return
		}
		if c.d.connected[c.owner]--; c.d.connected[c.owner] == 0 {
			delete(c.d.connected, c.owner)
		}
	})
	return c.Conn.Close()
}

// read tells the connection of a request that a message of it was read.
func read(ctx context.Context, message any) {
	if m, ok := message.(proto.Message); ok {
		if c := connOf(ctx); c != nil {
			c.complete(proto.Size(m))
		}
	}
}

// connOf is the connection that a request came by.
func connOf(ctx context.Context) *meteredConn {
	c, _ := ownuser.ConnOf(ctx).(*meteredConn)
	return c
}
