package sdk

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// link is one activation's access to the kernel's services: its token, on the
// connection that all extensions of the process share. Closing it ends its calls
// and streams.
type link struct {
	conn  *sharedConn
	token string
	open  context.Context
	end   context.CancelFunc
	close sync.Once
}

// sharedConn is shared by the links to one address.
type sharedConn struct {
	*grpc.ClientConn
	address string
	links   map[*link]func() // called when the connection is lost
	watched sync.Once        // from when it was ready
}

var (
	sharedMu sync.Mutex
	shared   = map[string]*sharedConn{} // by address
)

// dial connects to the kernel's services that Init describes. lost is called when
// an established connection breaks, but not when the link is closed.
func dial(ctx context.Context, init *extensionv1.InitRequest, lost func()) (*link, error) {
	l := &link{token: init.GetKernelToken()}
	l.open, l.end = context.WithCancel(context.Background())
	if err := l.join(init.GetKernelAddress(), lost); err != nil {
		l.end()
		return nil, fmt.Errorf("kernel address %q: %w: %w", init.GetKernelAddress(), contract.ErrInvalid, err)
	}
	conn := l.conn
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		conn.Connect()
		if state == connectivity.TransientFailure || !conn.WaitForStateChange(ctx, state) {
			l.Close()
			return nil, fmt.Errorf("connect to the kernel at %q: %w",
				strings.TrimSpace(init.GetKernelAddress()), contract.ErrGone)
		}
	}
	conn.watched.Do(func() { go conn.watch() })
	return l, nil
}

// join uses the connection to an address, and opens one if there is none.
func (l *link) join(address string, lost func()) error {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	c := shared[address]
	if c == nil {
		conn, err := newConn(address)
		if err != nil {
			return err
		}
		c = &sharedConn{ClientConn: conn, address: address, links: map[*link]func(){}}
		shared[address] = c
	}
	l.conn = c
	c.links[l] = lost
	return nil
}

// newConn returns a connection to the kernel that is not opened yet.
func newConn(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, append(contract.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
	)...)
}

// watch notifies every link when the connection, which was ready, is lost.
func (c *sharedConn) watch() {
	c.WaitForStateChange(context.Background(), connectivity.Ready)
	sharedMu.Lock()
	if shared[c.address] == c {
		delete(shared, c.address)
	}
	var lost []func()
	for _, f := range c.links {
		lost = append(lost, f)
	}
	sharedMu.Unlock()
	for _, f := range lost {
		f()
	}
}

// Close closes the link; the last one closes the connection.
func (l *link) Close() {
	l.close.Do(func() {
		l.end()
		sharedMu.Lock()
		defer sharedMu.Unlock()
		c := l.conn
		if delete(c.links, l); len(c.links) > 0 {
			return
		}
		if shared[c.address] == c {
			delete(shared, c.address)
		}
		_ = c.Close()
	})
}

// with returns a context with the token, which also ends with the link.
func (l *link) with(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, contract.TokenHeader, l.token))
	unlink := context.AfterFunc(l.open, cancel)
	if l.open.Err() != nil {
		cancel() // AfterFunc does so a moment later
	}
	return ctx, func() {
		unlink()
		cancel()
	}
}

// Invoke implements grpc.ClientConnInterface.
func (l *link) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	ctx, done := l.with(ctx)
	defer done()
	return l.conn.Invoke(ctx, method, args, reply, opts...)
}

// NewStream implements grpc.ClientConnInterface.
func (l *link) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx, done := l.with(ctx)
	s, err := l.conn.NewStream(ctx, desc, method, opts...)
	if err != nil {
		done()
		return nil, err
	}
	context.AfterFunc(s.Context(), done)
	return s, nil
}
