package discordchannel

import (
	"context"
	"sync"
	"time"
)

const (
	// typingDelay is how long a turn must run before the indicator is shown: a quick
	// answer needs none.
	typingDelay = 400 * time.Millisecond
	// typingEvery renews the action, which Discord shows for 10 seconds.
	typingEvery = 9 * time.Second
	// typingLimit ends it if the end of the turn is never reported.
	typingLimit = 3 * time.Minute
	// typingAtOnce bounds concurrent calls; further ones are skipped.
	typingAtOnce = 8
	typingCall   = 5 * time.Second
)

// typingIndicator shows in chats that the bot is typing. It never delays a message.
type typingIndicator struct {
	ctx                 context.Context
	send                func(context.Context, target) error
	delay, every, limit time.Duration
	slots               chan struct{}

	mu      sync.Mutex
	active  map[target]*indicator
	stopped bool
	calls   sync.WaitGroup
}

type indicator struct {
	timer *time.Timer
	until time.Time
	muted bool // refused by the chat
}

func newTypist(ctx context.Context, act func(context.Context, target) error) *typingIndicator {
	return &typingIndicator{
		ctx: ctx, send: act, delay: typingDelay, every: typingEvery, limit: typingLimit,
		slots: make(chan struct{}, typingAtOnce), active: map[target]*indicator{},
	}
}

// show starts or prolongs the indicator of a target.
func (t *typingIndicator) show(p target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	i := t.active[p]
	if i == nil {
		i = &indicator{}
		i.timer = time.AfterFunc(t.delay, func() { t.tick(p, i) })
		t.active[p] = i
	}
	i.until = time.Now().Add(t.limit)
}

// postpone delays the next call for a target, whose draft was just updated.
func (t *typingIndicator) postpone(p target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.active[p]; i != nil && !t.stopped {
		i.timer.Reset(t.every)
	}
}

// hide ends the indicator of a target, if any.
func (t *typingIndicator) hide(p target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.active[p]; i != nil {
		i.timer.Stop()
		delete(t.active, p)
	}
}

// stop ends all indicators and waits for running calls, whose context has ended.
func (t *typingIndicator) stop() {
	t.mu.Lock()
	t.stopped = true
	for p, i := range t.active {
		i.timer.Stop()
		delete(t.active, p)
	}
	t.mu.Unlock()
	t.calls.Wait()
}

// tick runs on the timer's goroutine.
func (t *typingIndicator) tick(p target, i *indicator) {
	t.mu.Lock()
	if t.stopped || t.active[p] != i {
		t.mu.Unlock()
		return
	}
	if time.Now().After(i.until) || t.ctx.Err() != nil {
		delete(t.active, p)
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
	ctx, cancel := context.WithTimeout(t.ctx, typingCall)
	defer cancel()
	if t.send(ctx, p) != nil {
		t.mu.Lock()
		i.muted = true
		t.mu.Unlock()
	}
}
