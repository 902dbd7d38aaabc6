package agent

import (
	"context"
	"math"

	"golang.org/x/sync/semaphore"
)

// places bounds how many turns have a request to the model in memory: beyond
// what the kernel lets through, it would only wait there. Turns that wait are
// served in order.
type places struct{ free *semaphore.Weighted }

func newPlaces(n int32) places {
	if n <= 0 {
		return places{semaphore.NewWeighted(math.MaxInt64)}
	}
	return places{semaphore.NewWeighted(int64(n))}
}

// enter waits for a place, at most as long as ctx, and returns the function that
// gives it back.
func (p places) enter(ctx context.Context) (leave func(), err error) {
	if err := p.free.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { p.free.Release(1) }, nil
}
