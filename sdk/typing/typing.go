// Package typing shows in conversations that the assistant is typing. It is for channels
// whose platform shows that for some seconds after a request.
package typing

import (
	"context"
	"sync"
	"time"
)

const (
	// Delay is how long a turn must run before the indicator is shown: a quick answer
	// needs none.
	Delay = 400 * time.Millisecond
	// Limit ends it if the end of the turn is never reported.
	Limit = 3 * time.Minute
	// atOnce bounds concurrent requests; further ones are skipped.
	atOnce         = 8
	requestTimeout = 5 * time.Second
)

// Indicators show that the assistant is typing, by address A. They never delay a message.
type Indicators[A comparable] struct {
	ctx   context.Context
	send  func(context.Context, A) error
	every time.Duration
	slots chan struct{}

	mu      sync.Mutex
	active  map[A]*indicator
	stopped bool
	calls   sync.WaitGroup
}

type indicator struct {
	timer *time.Timer
	until time.Time
	muted bool // refused by the conversation
}

// New returns indicators whose requests end with ctx. Send makes the platform show one,
// and is repeated each time that every has passed. After an error it is not repeated.
func New[A comparable](ctx context.Context, every time.Duration, send func(context.Context, A) error) *Indicators[A] {
	return &Indicators[A]{
		ctx: ctx, send: send, every: every, slots: make(chan struct{}, atOnce), active: map[A]*indicator{},
	}
}

// Show starts or prolongs the indicator of an address.
func (t *Indicators[A]) Show(to A) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	i := t.active[to]
	if i == nil {
		i = &indicator{}
		i.timer = time.AfterFunc(Delay, func() { t.tick(to, i) })
		t.active[to] = i
	}
	i.until = time.Now().Add(Limit)
}

// Postpone delays the next call for an address, whose draft was just updated.
func (t *Indicators[A]) Postpone(to A) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.active[to]; i != nil && !t.stopped {
		i.timer.Reset(t.every)
	}
}

// Hide ends the indicator of an address, if any.
func (t *Indicators[A]) Hide(to A) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.active[to]; i != nil {
		i.timer.Stop()
		delete(t.active, to)
	}
}

// Stop ends all indicators and waits for running calls, whose context has ended.
func (t *Indicators[A]) Stop() {
	t.mu.Lock()
	t.stopped = true
	for to, i := range t.active {
		i.timer.Stop()
		delete(t.active, to)
	}
	t.mu.Unlock()
	t.calls.Wait()
}

// tick runs on the timer's goroutine.
func (t *Indicators[A]) tick(to A, i *indicator) {
	t.mu.Lock()
	if t.stopped || t.active[to] != i {
		t.mu.Unlock()
		return
	}
	if time.Now().After(i.until) || t.ctx.Err() != nil {
		delete(t.active, to)
		t.mu.Unlock()
		return
	}
	i.timer.Reset(t.every)
	if i.muted {
		t.mu.Unlock()
		return
	}
	t.calls.Add(1)
	t.mu.Unlock()
	defer t.calls.Done()
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	default:
		return
	}
	ctx, cancel := context.WithTimeout(t.ctx, requestTimeout)
	defer cancel()
	if t.send(ctx, to) != nil {
		t.mu.Lock()
		i.muted = true
		t.mu.Unlock()
	}
}
