package host

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// inFlight bounds the commits of one stream whose receipts were not sent.
const inFlight = 8192

// commits is one stream of commits. It collects receipts until the stream can
// take them.
type commits struct {
	mu     sync.Mutex
	ready  []*busv1.CommitReceipt
	signal chan struct{}
	room   chan struct{} // holds a token for each commit whose receipt was not sent
}

func (c *commits) add(r *busv1.CommitReceipt) {
	c.mu.Lock()
	c.ready = append(c.ready, r)
	c.mu.Unlock()
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

func (c *commits) take() []*busv1.CommitReceipt {
	c.mu.Lock()
	defer c.mu.Unlock()
	ready := c.ready
	c.ready = nil
	return ready
}

// send sends receipts until ctx ends, or one cannot be sent.
func (c *commits) send(ctx context.Context, send func(*kernelv1.ReceiptFrame) error) {
	for {
		select {
		case <-c.signal:
		case <-ctx.Done():
			return
		}
		ready := c.take()
		if len(ready) == 0 {
			continue
		}
		if send(&kernelv1.ReceiptFrame{Receipts: ready}) != nil {
			return
		}
		for range ready {
			<-c.room
		}
	}
}

// acquire waits for room for one more commit.
func (c *commits) acquire(ctx context.Context) error {
	select {
	case c.room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Commit implements kernelv1.BusServer. When the extension sends no more, it
// gets the receipts of what it has sent.
func (s busService) Commit(stream grpc.BidiStreamingServer[kernelv1.CommitFrame, kernelv1.ReceiptFrame]) error {
	actor := actorOf(stream.Context())
	c := &commits{signal: make(chan struct{}, 1), room: make(chan struct{}, inFlight)}
	ctx, cancel := context.WithCancel(stream.Context())
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		defer cancel()
		c.send(ctx, stream.Send)
	}()
	defer func() {
		cancel()
		<-sent // nothing is sent on a stream that was returned from
	}()
	for {
		frame, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			for range cap(c.room) { // until every receipt was sent
				if err := c.acquire(ctx); err != nil {
					return err
				}
			}
			return nil
		}
		if err == nil {
			err = s.h.valid(actor)
		}
		if err != nil {
			return err
		}
		for _, commit := range frame.GetCommits() {
			if err := c.acquire(ctx); err != nil {
				return err
			}
			s.h.Bus.Submit(actor, commit, c.add)
		}
	}
}
