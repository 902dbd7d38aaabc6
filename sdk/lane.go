package sdk

import (
	"context"
	"sync"
	"time"
)

type laneKey struct{}

// LaneOf is the lane token that a handler's ctx carries; empty outside of
// handlers.
func LaneOf(ctx context.Context) string {
	token, _ := ctx.Value(laneKey{}).(string)
	return token
}

// WithLane returns a ctx whose calls of Kernel belong to the delivery or call
// with this token. Handlers have one already.
func WithLane(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, laneKey{}, token)
}

// laneContext is the context of one delivery. Most handlers never look at it,
// so the timer and the channel behind it exist only once somebody does.
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

func (c *laneContext) Done() <-chan struct{} { return c.real().Done() }
func (c *laneContext) Err() error            { return c.real().Err() }

func (c *laneContext) Value(key any) any {
	if key == (laneKey{}) {
		return c.token
	}
	return c.real().Value(key)
}

// real is the standard context behind c, made when it is first asked for.
func (c *laneContext) real() context.Context {
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

// end cancels c with a cause, as the kernel asked.
func (c *laneContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.make()
	c.release(cause)
}

// finish frees what c holds; the handler has returned.
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
