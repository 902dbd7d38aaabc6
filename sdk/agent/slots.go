package agent

import (
	"context"
	"math"

	"golang.org/x/sync/semaphore"
)

// slots bounds the number of turns that build a request to the model, since the kernel
// limits concurrent completions anyway. Waiting turns are served in order.
type slots struct{ free *semaphore.Weighted }

func newSlots(n int32) slots {
	if n <= 0 {
		return slots{semaphore.NewWeighted(math.MaxInt64)}
	}
	return slots{semaphore.NewWeighted(int64(n))}
}

// acquire waits for a slot until ctx ends. The caller must call release.
func (s slots) acquire(ctx context.Context) (release func(), err error) {
	if err := s.free.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { s.free.Release(1) }, nil
}
