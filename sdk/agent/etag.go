package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// untaggedTTL is how long a value without an etag is used.
const untaggedTTL = time.Second

// etagged caches a value of the kernel until its etag changes. One goroutine at a
// time loads it; if loading fails, the last value is used.
type etagged[T any] struct {
	load    func(context.Context) (T, error)
	loading chan struct{} // holds a token while one loads

	mu    sync.Mutex
	known bool
	value T
	etag  string
	at    time.Time
}

func newEtagged[T any](load func(context.Context) (T, error)) *etagged[T] {
	return &etagged[T]{load: load, loading: make(chan struct{}, 1)}
}

func (c *etagged[T]) get(ctx context.Context, etag string) (T, error) {
	if v, current, _ := c.cached(etag); current {
		return v, nil
	}
	select {
	case c.loading <- struct{}{}:
		defer func() { <-c.loading }()
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
	last, current, known := c.cached(etag)
	if current {
		return last, nil
	}
	v, err := c.load(ctx)
	if err != nil {
		if known && ctx.Err() == nil && !errors.Is(err, contract.ErrStale) {
			return last, nil
		}
		return last, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.value, c.etag, c.at = true, v, etag, time.Now()
	return v, nil
}

func (c *etagged[T]) cached(etag string) (v T, current, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if etag == "" || c.etag == "" {
		current = c.known && etag == c.etag && time.Since(c.at) < untaggedTTL
	} else {
		current = c.known && etag == c.etag
	}
	return c.value, current, c.known
}
