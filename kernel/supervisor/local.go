package supervisor

import (
	"context"
	"errors"
	"iter"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/switchboard-run/switchboard/contract"
)

// localBuffer is what a connection buffers in each direction, in bytes.
const localBuffer = 64 << 10

var errNotNeeded = errors.New("the extension was asked to end")

// unheard is the output of an extension of this process.
type unheard struct{}

func (unheard) Conceal(iter.Seq[string]) {}
func (unheard) Clean(text string) string { return text }

// startLocal starts an extension that Spec.Serve serves in this process.
func startLocal(serve func(context.Context, net.Listener) error) (*Process, error) {
	listener := bufconn.Listen(localBuffer)
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	conn, err := grpc.NewClient("passthrough:///local", append(contract.DialOptions(), grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0))...)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancelCause(context.Background())
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	p := &Process{
		Conn: conn, Context: ctx, Done: make(chan struct{}), Output: unheard{},
		Stopped: func() bool { return false },
		Quit:    func() { end(GoneError{errNotNeeded}) },
		// Nothing can end a goroutine that ignores the end of its context, but its
		// connection and its token are void.
		Kill:    func(reason string) { end(GoneError{errors.New(reason)}) },
		Release: func() { _ = conn.Close() },
	}
	go func() {
		defer close(p.Done)
		err := serve(ctx, listener)
		cause := context.Cause(ctx)
		switch {
		case cause != nil && !errors.Is(cause, errNotNeeded):
			p.Exit = Exit{Killed: true, Reason: cause.Error()}
		case err != nil:
			p.Exit = Exit{Reason: "the extension ended: " + err.Error()}
		default:
			p.Exit = Exit{Clean: true, Reason: "the extension ended by itself"}
		}
		end(GoneError{errors.New(p.Exit.Reason)})
	}()
	return p, nil
}
