package telegramchannel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// maxHold is how long a send waits for its turn before the delivery goes
	// back to the kernel, to come again later.
	maxHold = 2 * time.Second
	// manyChats is when chats that are not held any more are forgotten.
	manyChats = 2048
	// spareForSends is how much of the budget of all chats drafts leave free.
	spareForSends = 15
)

// pacer holds sends back, each chat for itself. It always obeys what Telegram
// asked for with retry_after; the documented rates it keeps only if enabled.
//
// Drafts keep the rates always, and have only what is left over: in a chat
// whose budget nobody has used, and while half of the budget of all chats is
// free. They never wait in a line, so a send never waits for more than the one
// draft of its chat that is under way.
type pacer struct {
	enabled bool

	mu     sync.Mutex
	all    budget
	line   []*waiter // for the budget of all
	chats  map[int64]*chatPace
	forget int           // how many chats are too many
	moved  chan struct{} // closed when a request has ended; nil: nobody waits
}

type chatPace struct {
	budget
	line   []*waiter
	closed time.Time // no request before
}

// waiter stands in a line.
type waiter struct{ _ byte }

func newPacer(enabled bool) *pacer {
	return &pacer{
		enabled: enabled, all: budget{every: time.Second / 30, burst: 30},
		chats: map[int64]*chatPace{}, forget: manyChats,
	}
}

// chat is the state of a chat; mu is held.
func (p *pacer) chat(id int64, now time.Time) *chatPace {
	c := p.chats[id]
	if c == nil {
		if len(p.chats) >= p.forget {
			p.tidy(now)
		}
		c = &chatPace{budget: budget{every: time.Second, burst: 3}}
		if id < 0 {
			c.budget = budget{every: 4 * time.Second, burst: 5} // 20 in any minute
		}
		p.chats[id] = c
	}
	return c
}

// tidy drops the chats that nothing holds back; mu is held.
func (p *pacer) tidy(now time.Time) {
	for id, c := range p.chats {
		if c.idle(now) && !c.closed.After(now) && len(c.line) == 0 {
			delete(p.chats, id)
		}
	}
	p.forget = max(manyChats, 2*len(p.chats))
}

// close keeps a chat closed for the time that Telegram asked for.
func (p *pacer) close(chat int64, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.chat(chat, now).closed = now.Add(d)
}

// begin takes from both budgets; mu is held. leave has to be called once the
// request has ended.
func (p *pacer) begin(c *chatPace) (leave func()) {
	c.begin()
	p.all.begin()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		now := time.Now()
		c.end(now)
		p.all.end(now)
		if p.moved != nil {
			close(p.moved)
			p.moved = nil
		}
	}
}

// spare is a place for a draft, if there is one now; if not, wait is how long
// it takes at the least until there is.
func (p *pacer) spare(chat int64) (leave func(), wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	c := p.chat(chat, now)
	wait = max(c.closed.Sub(now), c.wait(now, 1, c.burst-1), p.all.wait(now, 1, spareForSends))
	if wait <= 0 && len(c.line)+len(p.line) == 0 {
		return p.begin(c), 0
	}
	return nil, max(wait, p.all.every)
}

// enter waits until a message may go to the chat. If that takes long, the error
// says when to try again. leave has to be called once the message has gone.
func (p *pacer) enter(ctx context.Context, chat int64) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	c, me, patience := p.chat(chat, now), &waiter{}, now.Add(maxHold)
	c.line = append(c.line, me)
	defer func() { c.line, p.line = outOf(c.line, me), outOf(p.line, me) }()
	for {
		wait, why := p.hold(c, me, now)
		switch {
		case wait <= 0:
			return p.begin(c), nil
		case now.Add(wait).After(patience):
			return nil, sdk.Retry(wait, why)
		}
		if p.moved == nil {
			p.moved = make(chan struct{})
		}
		moved := p.moved
		p.mu.Unlock()
		ended := sleep(ctx, wait, moved)
		p.mu.Lock()
		if ended {
			return nil, sdk.Retry(time.Second, ctx.Err())
		}
		now = time.Now()
	}
}

// hold is how long a send has to wait, at the least, and for what. mu is held.
//
// The chat's own limit comes first: a chat that is held takes nothing from the
// others, and stands in the line for all only when its own turn has come.
func (p *pacer) hold(c *chatPace, me *waiter, now time.Time) (wait time.Duration, why error) {
	if wait = c.closed.Sub(now); wait > 0 {
		return wait, fmt.Errorf("held for another %s, as Telegram asked for this chat", wait.Round(time.Second))
	}
	if !p.enabled {
		return 0, nil
	}
	if wait = c.wait(now, 1+slices.Index(c.line, me), 0); wait > 0 {
		return wait, errors.New("held: messages to one chat are sent slowly, as Telegram wants it")
	}
	if !slices.Contains(p.line, me) {
		p.line = append(p.line, me)
	}
	return p.all.wait(now, 1+slices.Index(p.line, me), 0), errors.New("held: the bot sends as many messages as Telegram allows it")
}

func outOf(line []*waiter, me *waiter) []*waiter {
	return slices.DeleteFunc(line, func(w *waiter) bool { return w == me })
}

// sleep waits for the time or for moved, and says whether ctx has ended.
func sleep(ctx context.Context, d time.Duration, moved <-chan struct{}) (ended bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-moved:
	case <-ctx.Done():
		return true
	}
	return false
}
