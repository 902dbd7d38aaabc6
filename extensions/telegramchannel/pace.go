package telegramchannel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// maxHold is how long a send waits for its turn before the delivery goes
	// back to the kernel, to come again later.
	maxHold = 2 * time.Second
	// manyChats is when chats that are not held any more are forgotten.
	manyChats = 2048
)

// pacer holds sends back, each chat for itself. It always obeys what Telegram
// asked for with retry_after; the documented rates it keeps only if enabled.
type pacer struct {
	all *rate.Limiter // nil: not enabled

	mu    sync.Mutex
	chats map[int64]*chatPace
}

type chatPace struct {
	limiter *rate.Limiter // nil: not enabled
	closed  time.Time     // no send before
}

func newPacer(enabled bool) *pacer {
	p := &pacer{chats: map[int64]*chatPace{}}
	if enabled {
		p.all = rate.NewLimiter(30, 30)
	}
	return p
}

// chat is the state of a chat; mu is held.
func (p *pacer) chat(id int64) *chatPace {
	c := p.chats[id]
	if c == nil {
		if len(p.chats) >= manyChats {
			p.forget(time.Now())
		}
		c = &chatPace{}
		switch {
		case p.all == nil:
		case id < 0:
			c.limiter = rate.NewLimiter(rate.Every(4*time.Second), 5) // 20 in any minute
		default:
			c.limiter = rate.NewLimiter(1, 3)
		}
		p.chats[id] = c
	}
	return c
}

// forget drops the chats that nothing holds back; mu is held.
func (p *pacer) forget(now time.Time) {
	for id, c := range p.chats {
		full := c.limiter == nil || c.limiter.TokensAt(now) >= float64(c.limiter.Burst())
		if full && !c.closed.After(now) {
			delete(p.chats, id)
		}
	}
}

// close keeps a chat closed for the time that Telegram asked for.
func (p *pacer) close(chat int64, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chat(chat).closed = time.Now().Add(d)
}

// enter waits until a message may go to the chat. If that takes long, the error
// says when to try again.
func (p *pacer) enter(ctx context.Context, chat int64) error {
	now := time.Now()
	p.mu.Lock()
	if p.all == nil && p.chats[chat] == nil {
		p.mu.Unlock()
		return nil
	}
	c := p.chat(chat)
	wait := c.closed.Sub(now)
	p.mu.Unlock()
	if wait > maxHold {
		return sdk.Retry(wait, fmt.Errorf("held for another %s, as Telegram asked for this chat", wait.Round(time.Second)))
	}
	if c.limiter == nil {
		return p.hold(ctx, wait)
	}
	// The chat's own limit comes first: a chat that is held takes nothing from the others.
	own := c.limiter.ReserveN(now, 1)
	wait = max(wait, own.DelayFrom(now))
	if wait > maxHold {
		own.CancelAt(now)
		return sdk.Retry(wait, errors.New("held: messages to one chat are sent slowly, as Telegram wants it"))
	}
	if err := p.hold(ctx, wait); err != nil {
		own.Cancel()
		return err
	}
	now = time.Now()
	all := p.all.ReserveN(now, 1)
	if wait = all.DelayFrom(now); wait > maxHold {
		all.CancelAt(now)
		return sdk.Retry(wait, errors.New("held: the bot sends as many messages as Telegram allows it"))
	}
	return p.hold(ctx, wait)
}

func (p *pacer) hold(ctx context.Context, d time.Duration) error {
	if !pause(ctx, d) {
		return sdk.Retry(time.Second, ctx.Err())
	}
	return nil
}
