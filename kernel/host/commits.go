package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// inFlight bounds the commits of one stream whose receipts were not sent.
const inFlight = 8192

// atOnce is how many commits of a frame are submitted together.
const atOnce = 1024

// commits is one stream of commits. It collects receipts until the stream can
// take them.
type commits struct {
	mu     sync.Mutex
	ready  []*busv1.CommitReceipt
	signal chan struct{}
	room   *semaphore.Weighted // for commits whose receipts were not sent
}

func (c *commits) add(receipts []*busv1.CommitReceipt) {
	c.mu.Lock()
	c.ready = append(c.ready, receipts...)
	c.mu.Unlock()
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// send sends receipts until ctx ends, or one cannot be sent.
func (c *commits) send(ctx context.Context, send func(*kernelv1.ReceiptFrame) error) {
	for {
		select {
		case <-c.signal:
		case <-ctx.Done():
			return
		}
		c.mu.Lock()
		ready := c.ready
		c.ready = nil
		c.mu.Unlock()
		if len(ready) == 0 {
			continue
		}
		if send(&kernelv1.ReceiptFrame{Receipts: ready}) != nil {
			return
		}
		c.room.Release(int64(len(ready)))
	}
}

// Commit implements kernelv1.BusServer. After the extension has closed its side, it
// gets the remaining receipts.
func (s busService) Commit(stream grpc.BidiStreamingServer[kernelv1.CommitFrame, kernelv1.ReceiptFrame]) error {
	extension := clientOf(stream.Context())
	c := &commits{signal: make(chan struct{}, 1), room: semaphore.NewWeighted(inFlight)}
	ctx, cancel := context.WithCancel(stream.Context())
	var sending sync.WaitGroup
	defer sending.Wait() // nothing is sent on a stream after the return
	defer cancel()
	sending.Go(func() {
		defer cancel()
		c.send(ctx, stream.Send)
	})
	for {
		frame, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return c.room.Acquire(ctx, inFlight) // every receipt was sent
		}
		if err != nil {
			return err
		}
		if a := extension.actor; extension.gone.Load() { // the stream outlives it for a moment
			return fmt.Errorf("%w: generation %d of %s has ended", contract.ErrStale, a.Generation, a.ID)
		}
		for some := range slices.Chunk(frame.GetCommits(), atOnce) {
			if err := c.room.Acquire(ctx, int64(len(some))); err != nil {
				return err
			}
			s.h.Bus.Submit(extension.actor, some, c.add)
		}
	}
}
