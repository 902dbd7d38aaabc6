// Package pause is how an extension waits between attempts.
package pause

import (
	"context"
	"time"
)

// For waits, and reports false if ctx has ended. A time of zero or less only asks that.
func For(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	return Until(ctx, d, nil)
}

// Until waits for a time or for moved, and reports false if ctx has ended.
func Until(ctx context.Context, d time.Duration, moved <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-moved:
	case <-ctx.Done():
		return false
	}
	return true
}

// Backoff returns the pause after the nth failure in a row, n from 1: 200 ms, doubled
// each time, at most 15 s.
func Backoff(n int) time.Duration {
	const first, most = 200 * time.Millisecond, 15 * time.Second
	if n > 8 {
		return most
	}
	return min(first<<(n-1), most)
}
