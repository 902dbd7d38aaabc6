package telegramchannel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

const (
	// maxWait is how long a send waits before the kernel retries it later.
	maxWait = 2 * time.Second
	// maxChats is the number of chats above which idle ones are dropped.
	maxChats = 2048
	// spareForSends is the part of the bot's budget that drafts leave free.
	spareForSends = 15
)

// pacer delays sends, per chat. It always respects retry_after, and if enabled also
// Telegram's documented rates.
//
// Drafts always respect the rates and use only spare budget: the chat's budget must be
// unused, and half of the bot's budget free. They never queue, so a send waits at most
// for the one running draft request of its chat.
type pacer struct {
	enabled bool

	mu      sync.Mutex
	all     budget
	queue   []*waiter // for the bot's budget
	chats   map[int64]*chatPace
	pruneAt int           // number of chats that starts a prune
	freed   chan struct{} // closed when a request ends; nil: no waiter
}

type chatPace struct {
	budget
	queue        []*waiter
	blockedUntil time.Time // no request before this time
}

// waiter is a send in a queue.
type waiter struct{ _ byte }

func newPacer(enabled bool) *pacer {
	return &pacer{
		enabled: enabled, all: budget{every: time.Second / 30, burst: 30},
		chats: map[int64]*chatPace{}, pruneAt: maxChats,
	}
}

// chat returns the state of a chat; mu is held.
func (p *pacer) chat(id int64, now time.Time) *chatPace {
	c := p.chats[id]
	if c == nil {
		if len(p.chats) >= p.pruneAt {
			p.prune(now)
		}
		c = &chatPace{budget: budget{every: time.Second, burst: 3}}
		if id < 0 {
			c.budget = budget{every: 4 * time.Second, burst: 5} // 20 in any minute
		}
		p.chats[id] = c
	}
	return c
}

// prune drops idle chats; mu is held.
func (p *pacer) prune(now time.Time) {
	for id, c := range p.chats {
		if c.idle(now) && !c.blockedUntil.After(now) && len(c.queue) == 0 {
			delete(p.chats, id)
		}
	}
	p.pruneAt = max(maxChats, 2*len(p.chats))
}

// block blocks a chat for a time, as Telegram requested.
func (p *pacer) block(chat int64, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.chat(chat, now).blockedUntil = now.Add(d)
}

// reserve takes a request from both budgets; mu is held. leave must be called when
// the request has ended.
func (p *pacer) reserve(c *chatPace) (leave func()) {
	c.begin()
	p.all.begin()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		now := time.Now()
		c.end(now)
		p.all.end(now)
		if p.freed != nil {
			close(p.freed)
			p.freed = nil
		}
	}
}

// tryEnter reserves a request for a draft; leave is nil if there is no spare budget,
// and wait the least time until there is.
func (p *pacer) tryEnter(chat int64) (leave func(), wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	c := p.chat(chat, now)
	wait = max(c.blockedUntil.Sub(now), c.wait(now, 1, c.burst-1), p.all.wait(now, 1, spareForSends))
	if wait <= 0 && len(c.queue)+len(p.queue) == 0 {
		return p.reserve(c), 0
	}
	return nil, max(wait, p.all.every)
}

// enter waits until a message may be sent to the chat. If that takes too long, the
// error asks for a retry. leave must be called when the request has ended.
func (p *pacer) enter(ctx context.Context, chat int64) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	c, me, deadline := p.chat(chat, now), &waiter{}, now.Add(maxWait)
	c.queue = append(c.queue, me)
	defer func() { c.queue, p.queue = removeWaiter(c.queue, me), removeWaiter(p.queue, me) }()
	for {
		wait, why := p.delay(c, me, now)
		switch {
		case wait <= 0:
			return p.reserve(c), nil
		case now.Add(wait).After(deadline):
			return nil, sdk.Retry(wait, why)
		}
		if p.freed == nil {
			p.freed = make(chan struct{})
		}
		moved := p.freed
		p.mu.Unlock()
		ended := !pause.Until(ctx, wait, moved)
		p.mu.Lock()
		if ended {
			return nil, sdk.Retry(time.Second, ctx.Err())
		}
		now = time.Now()
	}
}

// delay returns the least time that a send must wait, and why. mu is held.
//
// The chat's own limit comes first: a blocked chat takes nothing from the others, and
// joins the queue for the bot's budget only when its own budget allows the send.
func (p *pacer) delay(c *chatPace, me *waiter, now time.Time) (wait time.Duration, why error) {
	if wait = c.blockedUntil.Sub(now); wait > 0 {
		return wait, fmt.Errorf("this chat is limited by Telegram: waiting %s", wait.Round(time.Second))
	}
	if !p.enabled {
		return 0, nil
	}
	if wait = c.wait(now, 1+slices.Index(c.queue, me), 0); wait > 0 {
		return wait, errors.New("waiting for Telegram's rate limit of this chat")
	}
	if !slices.Contains(p.queue, me) {
		p.queue = append(p.queue, me)
	}
	return p.all.wait(now, 1+slices.Index(p.queue, me), 0), errors.New("waiting for Telegram's rate limit of this bot")
}

func removeWaiter(line []*waiter, me *waiter) []*waiter {
	return slices.DeleteFunc(line, func(w *waiter) bool { return w == me })
}
