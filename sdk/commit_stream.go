package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

const (
	// maxCommit is the largest commit or outcome, in bytes. It leaves room for the
	// framing of a gRPC message.
	maxCommit = contract.MaxMessage - 64<<10
	// frameBytes is the size at which a frame is sent even if more is waiting:
	// large enough to amortize its cost, small enough not to delay its first commit.
	frameBytes = 1 << 20
)

// commitStream carries the commits of all callers over one stream. One goroutine
// writes the waiting commits in frames, one reads receipts, which come in the order
// of the commits.
type commitStream struct {
	stream kernelv1.Bus_CommitClient
	stop   context.CancelFunc
	wake   chan struct{} // capacity 1

	mu      sync.Mutex
	waiting []*pendingCommit
	sent    []*pendingCommit
	closed  error // why no more receipts will come; set once
}

type pendingCommit struct {
	commit  *busv1.Commit
	size    int
	receipt chan commitResult // capacity 1
}

// commitPool holds finished pending commits. Nothing else refers to them, and their
// channels are empty.
var commitPool = sync.Pool{New: func() any { return &pendingCommit{receipt: make(chan commitResult, 1)} }}

type commitResult struct {
	receipt *busv1.CommitReceipt
	err     error
}

// commit sends one commit and waits for its receipt.
func (k *Kernel) commit(ctx context.Context, c *busv1.Commit) ([]*busv1.EffectResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	size := sizeBound(c)
	if size > maxCommit {
		size = proto.Size(c)
	}
	if size > maxCommit {
		return nil, fmt.Errorf("commit of %d effects with %d bytes (at most %d): %w",
			len(c.GetEffects()), size, maxCommit, contract.ErrTooLarge)
	}
	p := commitPool.Get().(*pendingCommit)
	p.commit, p.size = c, size
	s, err := k.enqueue(p) //nolint:contextcheck // the stream outlives this commit
	if err != nil {
		return nil, err
	}
	select {
	case r := <-p.receipt:
		p.commit = nil
		commitPool.Put(p)
		return r.results()
	case <-ctx.Done():
	}
	if s.forget(p) {
		return nil, fmt.Errorf("commit, not sent: %w", ctx.Err())
	}
	select {
	case r := <-p.receipt: // arrived at the same time
		return r.results()
	default:
		return nil, fmt.Errorf("commit, sent but not confirmed: %w", ctx.Err())
	}
}

// sizeBound is an upper bound of a commit's size, faster than proto.Size.
func sizeBound(c *busv1.Commit) int {
	const fields = 64 // the overhead of each effect
	size := len(c.GetId()) + len(c.GetLane()) + fields
	for _, e := range c.GetEffects() {
		switch k := e.GetKind().(type) {
		case *busv1.Effect_Publish:
			p := k.Publish
			size += len(p.GetTopic()) + len(p.GetKey()) + len(p.GetDedupeKey()) + len(p.GetPayload()) + fields
		case *busv1.Effect_Put:
			size += len(k.Put.GetKey()) + len(k.Put.GetValue()) + fields
		default:
			size += proto.Size(e) + fields
		}
	}
	return size
}

func (r commitResult) results() ([]*busv1.EffectResult, error) {
	if r.err != nil {
		return nil, r.err
	}
	if e := r.receipt.GetError(); e != nil {
		return nil, contract.FromProto(e)
	}
	return r.receipt.GetResults(), nil
}

// enqueue adds p to the open stream, or to a new one if there is none.
func (k *Kernel) enqueue(p *pendingCommit) (*commitStream, error) {
	if s := k.commits.Load(); s != nil && s.add(p) {
		return s, nil
	}
	k.committing.Lock()
	defer k.committing.Unlock()
	if s := k.commits.Load(); s != nil && s.add(p) {
		return s, nil
	}
	if k.ctx.Err() != nil {
		return nil, fmt.Errorf("commit: the extension has shut down: %w", contract.ErrGone)
	}
	ctx, stop := context.WithCancel(k.ctx)
	stream, err := k.bus.Commit(ctx)
	if err != nil {
		stop()
		return nil, fmt.Errorf("commit: %w", contract.FromStatus(err))
	}
	s := &commitStream{stream: stream, stop: stop, wake: make(chan struct{}, 1)}
	s.add(p)
	k.commits.Store(s)
	go s.write(ctx)
	go s.read()
	return s, nil
}

// add queues p; false: the stream is closed.
func (s *commitStream) add(p *pendingCommit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return false
	}
	s.waiting = append(s.waiting, p)
	if len(s.waiting) == 1 {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// forget removes p unless it was sent.
func (s *commitStream) forget(p *pendingCommit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, w := range s.waiting {
		if w == p {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			return true
		}
	}
	return false
}

func (s *commitStream) write(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		runtime.Gosched() // lets callers that are about to commit join the frame
		for {
			frame := s.frame()
			if frame == nil {
				break
			}
			if s.stream.Send(frame) != nil {
				return // read gets the reason
			}
		}
	}
}

// frame moves waiting commits into one frame; nil if there are none.
func (s *commitStream) frame() *kernelv1.CommitFrame {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, size := 0, 0
	for n < len(s.waiting) && (n == 0 || size+s.waiting[n].size <= frameBytes) {
		size += s.waiting[n].size
		n++
	}
	if n == 0 {
		return nil
	}
	commits := make([]*busv1.Commit, n)
	for i, p := range s.waiting[:n] {
		commits[i] = p.commit
	}
	s.sent = append(s.sent, s.waiting[:n]...)
	s.waiting = shift(s.waiting, n)
	return &kernelv1.CommitFrame{Commits: commits}
}

func (s *commitStream) read() {
	defer s.stop()
	for {
		frame, err := s.stream.Recv()
		if err != nil {
			s.fail(err)
			return
		}
		for i, done := range s.receive(len(frame.GetReceipts())) {
			done.receipt <- commitResult{receipt: frame.GetReceipts()[i]}
		}
	}
}

// receive removes and returns the n commits that were sent first.
func (s *commitStream) receive(n int) []*pendingCommit {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, len(s.sent))
	done := append(make([]*pendingCommit, 0, n), s.sent[:n]...)
	s.sent = shift(s.sent, n)
	return done
}

// fail closes the stream and answers all pending commits with err.
func (s *commitStream) fail(err error) {
	if errors.Is(err, io.EOF) {
		err = contract.ErrGone
	} else {
		err = contract.FromStatus(err)
	}
	if errors.Is(err, context.Canceled) { // our own connection was closed
		err = contract.ErrGone
	}
	s.mu.Lock()
	s.closed = err
	sent, waiting := s.sent, s.waiting
	s.sent, s.waiting = nil, nil
	s.mu.Unlock()
	for _, p := range sent {
		p.receipt <- commitResult{err: fmt.Errorf("commit, sent but not confirmed: %w", err)}
	}
	for _, p := range waiting {
		p.receipt <- commitResult{err: fmt.Errorf("commit, not sent: %w", err)}
	}
}

// shift drops the first n elements in place and keeps the capacity.
func shift[T any](s []T, n int) []T {
	rest := copy(s, s[n:])
	clear(s[rest:])
	return s[:rest]
}
