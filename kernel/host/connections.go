package host

import (
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract/ownuser"
)

// connections accepts connections, each with a meter.
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
	own.Check, own.MaxUnread = d.checkUser, d.unread
	own.Overrun = func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.refuse("", fmt.Sprintf("a connection was closed: %d MiB of its requests were not complete", d.unread>>20))
	}
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

// know notes the owner of the connection of a request. The caller holds d.mu.
func (d *admission) know(ctx context.Context, c *client) error {
	conn := connOf(ctx)
	if conn == nil || conn.owner != nil {
		return nil
	}
	if c.connections >= d.connections && c.actor != owner {
		return d.refuse(c.actor.ID, tooMany("connections to the kernel", d.connections))
	}
	c.connections++
	conn.owner = c
	conn.Authenticated()
	return nil
}

// meteredConn counts the bytes that were read from it and belong to no complete
// request yet.
type meteredConn struct {
	*ownuser.Conn
	d       *admission
	control bool    // the owner's
	owner   *client // of the first token; guarded by d.mu
	closed  sync.Once
}

// Close implements net.Conn.
func (c *meteredConn) Close() error {
	c.closed.Do(func() {
		c.d.mu.Lock()
		defer c.d.mu.Unlock()
		if c.owner != nil {
			c.owner.connections--
		}
	})
	return c.Conn.Close()
}

// read notes on the connection of a request that a message of it was read.
func read(ctx context.Context, message any) {
	if m, ok := message.(proto.Message); ok {
		if c := connOf(ctx); c != nil {
			c.Complete(proto.Size(m))
		}
	}
}

// connOf is the connection of a request; nil: unknown.
func connOf(ctx context.Context) *meteredConn {
	c, _ := ownuser.ConnOf(ctx).(*meteredConn)
	return c
}
