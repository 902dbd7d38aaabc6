package supervisor

import (
	"context"
	"errors"
	"iter"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/switchboard-run/switchboard/contract"
)

var errNotNeeded = errors.New("it was asked to end")

// localProcess is an extension that Spec.Serve serves in this process.
type localProcess struct {
	conn *grpc.ClientConn
	ctx  context.Context
	end  context.CancelCauseFunc
	done chan struct{}

	mu     sync.Mutex
	killed string // why; empty: it was not
	exit   exit
}

var _ process = (*localProcess)(nil)

func startLocal(serve func(context.Context, net.Listener) error) (process, error) {
	ctx, end := context.WithCancelCause(context.Background())
	p := &localProcess{ctx: ctx, end: end, done: make(chan struct{})}
	pipes := pipeListener{conns: make(chan net.Conn), ended: ctx.Done()}
	var err error
	p.conn, err = grpc.NewClient("passthrough:///local", grpc.WithContextDialer(pipes.dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(contract.MaxMessage), grpc.MaxCallSendMsgSize(contract.MaxMessage)),
		grpc.WithStaticStreamWindowSize(contract.StreamWindow), grpc.WithStaticConnWindowSize(contract.ConnWindow))
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		err := serve(ctx, pipes)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.exit = exit{Clean: err == nil && p.killed == "", Killed: p.killed != "", Reason: p.killed}
		switch {
		case p.killed != "":
		case err != nil:
			p.exit.Reason = "it ended: " + err.Error()
		default:
			p.exit.Reason = "it ended by itself"
		}
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

// pipeListener accepts connections within this process.
type pipeListener struct {
	conns chan net.Conn
	ended <-chan struct{}
}

func (l pipeListener) dial(ctx context.Context, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
	case <-l.ended:
	}
	return nil, errors.Join(net.ErrClosed, ours.Close(), theirs.Close())
}

// Accept implements net.Listener.
func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l pipeListener) Close() error { return nil }

// Addr implements net.Listener.
func (l pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
