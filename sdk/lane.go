package sdk

import (
	"context"
	"sync"
	"time"
)

type laneKey struct{}

// LaneOf returns the lane token of a handler's ctx; empty outside of handlers.
func LaneOf(ctx context.Context) string {
	token, _ := ctx.Value(laneKey{}).(string)
	return token
}

// WithLane returns a ctx with the lane token of a delivery or call. The ctx of a
// handler already has one.
func WithLane(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, laneKey{}, token)
}

// laneContext is the context of one delivery. Most handlers never use it, so its
// timer and channel are created on first use.
type laneContext struct {
	base     context.Context
	token    string
	deadline time.Time // zero: none

	mu     sync.Mutex
	ended  bool
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   context.CancelFunc
}

func (c *laneContext) Deadline() (time.Time, bool) {
	if d, ok := c.base.Deadline(); ok && (c.deadline.IsZero() || d.Before(c.deadline)) {
		return d, true
	}
	return c.deadline, !c.deadline.IsZero()
}

func (c *laneContext) Done() <-chan struct{} { return c.inner().Done() }
func (c *laneContext) Err() error            { return c.inner().Err() }

func (c *laneContext) Value(key any) any {
	if key == (laneKey{}) {
		return c.token
	}
	return c.inner().Value(key)
}

// inner returns the standard context that c wraps, created on first use.
func (c *laneContext) inner() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.make()
	return c.ctx
}

func (c *laneContext) make() {
	if c.ctx != nil {
		return
	}
	c.ctx, c.cancel = context.WithCancelCause(c.base)
	if !c.deadline.IsZero() {
		c.ctx, c.stop = context.WithDeadline(c.ctx, c.deadline)
	}
	if c.ended {
		c.release(context.Canceled)
	}
}

// end cancels c with a cause.
func (c *laneContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.make()
	c.release(cause)
}

// finish frees the resources of c after the handler has returned.
func (c *laneContext) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.ctx != nil {
		c.release(context.Canceled)
	}
}

func (c *laneContext) release(cause error) {
	c.cancel(cause)
	if c.stop != nil {
		c.stop()
	}
}
