package supervisor

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// localBuffer is what a connection buffers in each direction, in bytes.
const localBuffer = 64 << 10

var errNotNeeded = errors.New("the extension was asked to end")

// localProcess is an extension that Spec.Serve serves in this process.
type localProcess struct {
	conn *grpc.ClientConn
	ctx  context.Context
	end  context.CancelCauseFunc
	done chan struct{}

	mu     sync.Mutex
	killed string // the reason; empty: not killed
	exit   exit
}

var _ process = (*localProcess)(nil)

func startLocal(serve func(context.Context, net.Listener) error) (process, error) {
	ctx, end := context.WithCancelCause(context.Background())
	p := &localProcess{ctx: ctx, end: end, done: make(chan struct{})}
	listener := bufconn.Listen(localBuffer)
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	var err error
	p.conn, err = grpc.NewClient("passthrough:///local", append(dialOptions(), grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0))...)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		defer close(p.done)
		err := serve(ctx, listener)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.exit = exit{Clean: err == nil && p.killed == "", Killed: p.killed != "", Reason: "the extension ended by itself"}
		if err != nil {
			p.exit.Reason = "the extension ended: " + err.Error()
		}
		p.exit.Reason = cmp.Or(p.killed, p.exit.Reason)
		end(goneError{errors.New(p.exit.Reason)})
	}()
	return p, nil
}

func (p *localProcess) PID() int                       { return 0 } // it has none of its own
func (p *localProcess) Conn() grpc.ClientConnInterface { return p.conn }
func (p *localProcess) Context() context.Context       { return p.ctx }
func (p *localProcess) Done() <-chan struct{}          { return p.done }
func (p *localProcess) Quit()                          { p.end(goneError{errNotNeeded}) }
func (p *localProcess) Release()                       { _ = p.conn.Close() }
func (p *localProcess) Conceal(iter.Seq[string])       {}
func (p *localProcess) Clean(text string) string       { return text }
func (*localProcess) Sockets() string                  { return "" }

func (p *localProcess) Exit() exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// Kill ends the context: nothing can end a goroutine that ignores it, but its
// connection and its token are void.
func (p *localProcess) Kill(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed == "" && p.ctx.Err() == nil {
		p.killed = reason
	}
	p.end(goneError{errors.New(reason)})
}
