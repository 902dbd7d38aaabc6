package telegramchannel

import (
	"context"
	"sync"
	"time"
)

const (
	// typingDelay is how long a turn has to run before it shows: an answer that
	// is there at once needs no announcement.
	typingDelay = 400 * time.Millisecond
	// typingEvery renews the action, which Telegram shows for 5 seconds.
	typingEvery = 4500 * time.Millisecond
	// typingLimit ends it when nobody says that the turn is over.
	typingLimit = 3 * time.Minute
	// typingAtOnce is how many of these calls are made at the same time; more are left out.
	typingAtOnce = 8
	typingCall   = 5 * time.Second
)

// typist shows in chats that the bot is typing. Nothing waits for it.
type typist struct {
	ctx                 context.Context
	act                 func(context.Context, place) error
	delay, every, limit time.Duration
	slots               chan struct{}

	mu    sync.Mutex
	shown map[place]*indicator
	ended bool
	calls sync.WaitGroup
}

type indicator struct {
	timer *time.Timer
	until time.Time
	muted bool // the chat refuses it
}

func newTypist(ctx context.Context, act func(context.Context, place) error) *typist {
	return &typist{
		ctx: ctx, act: act, delay: typingDelay, every: typingEvery, limit: typingLimit,
		slots: make(chan struct{}, typingAtOnce), shown: map[place]*indicator{},
	}
}

// show starts or prolongs the indicator of a place.
func (t *typist) show(p place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	i := t.shown[p]
	if i == nil {
		i = &indicator{}
		i.timer = time.AfterFunc(t.delay, func() { t.tick(p, i) })
		t.shown[p] = i
	}
	i.until = time.Now().Add(t.limit)
}

// rest says that the text of a place has moved, which shows as much.
func (t *typist) rest(p place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.shown[p]; i != nil && !t.ended {
		i.timer.Reset(t.every)
	}
}

// hide ends the indicator of a place, if there is one.
func (t *typist) hide(p place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.shown[p]; i != nil {
		i.timer.Stop()
		delete(t.shown, p)
	}
}

// stop ends all indicators and waits for the calls under way, whose context has ended.
func (t *typist) stop() {
	t.mu.Lock()
	t.ended = true
	for p, i := range t.shown {
		i.timer.Stop()
		delete(t.shown, p)
	}
	t.mu.Unlock()
	t.calls.Wait()
}

// tick runs on the timer's goroutine.
func (t *typist) tick(p place, i *indicator) {
	t.mu.Lock()
	if t.ended || t.shown[p] != i {
		t.mu.Unlock()
		return
	}
	if time.Now().After(i.until) || t.ctx.Err() != nil {
		delete(t.shown, p)
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
	if t.act(ctx, p) != nil {
		t.mu.Lock()
		i.muted = true
		t.mu.Unlock()
	}
}
