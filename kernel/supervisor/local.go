package supervisor

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// localBuffer is what a connection buffers in each direction, in bytes.
const localBuffer = 64 << 10

var errNotNeeded = errors.New("the extension was asked to end")

// startLocal starts an extension that Spec.Serve serves in this process.
func startLocal(serve func(context.Context, net.Listener) error) (*process, error) {
	listener := bufconn.Listen(localBuffer)
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	conn, err := grpc.NewClient("passthrough:///local", append(dialOptions(), grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0))...)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancelCause(context.Background())
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	p := &process{
		conn: conn, ctx: ctx, done: make(chan struct{}), output: unheard{},
		quit: func() { end(goneError{errNotNeeded}) },
		// Nothing can end a goroutine that ignores the end of its context, but its
		// connection and its token are void.
		kill:    func(reason string) { end(goneError{errors.New(reason)}) },
		release: func() { _ = conn.Close() },
	}
	go func() {
		defer close(p.done)
		err := serve(ctx, listener)
		cause := context.Cause(ctx)
		switch {
		case cause != nil && !errors.Is(cause, errNotNeeded):
			p.exit = exit{Killed: true, Reason: cause.Error()}
		case err != nil:
			p.exit = exit{Reason: "the extension ended: " + err.Error()}
		default:
			p.exit = exit{Clean: true, Reason: "the extension ended by itself"}
		}
		end(goneError{errors.New(p.exit.Reason)})
	}()
	return p, nil
}
