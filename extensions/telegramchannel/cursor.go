package telegramchannel

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// cursor is the stored position: the id of the next update, and when it was set.
type cursor struct {
	Next int64 `json:"next"`
	At   int64 `json:"at"` // Unix seconds
	// Held are messages in front of it that are not reported yet.
	Held []report `json:"held,omitempty"`
}

// report is a message as it is reported, with its dedupe key.
type report struct {
	Dedupe  string               `json:"dedupe"`
	Message contract.UserMessage `json:"message"`
}

func (r report) effect() sdk.Effect {
	return sdk.Publish(contract.TopicUserMessage, r.Message, sdk.Dedupe(r.Dedupe))
}

func effectsOf(reports []report) (effects sdk.Effects) {
	for _, r := range reports {
		effects = append(effects, r.effect())
	}
	return effects
}

// After an outage Telegram gives what waits in several answers, and each chat is
// to get one reply. So what is old enough is held, in the store, until the last
// answer has come: it has to be stored before the next one is asked for, for
// asking confirms it.
const (
	outage   = time.Hour // the age from which on agents answer messages together
	mostHeld = 1000      // messages
	heldText = 256 << 10 // bytes of their texts
	fullPoll = 100       // updates: there may be more
)

// holds reports whether a batch is to be held.
func (c cursor) holds(batch []arrival, now time.Time) bool {
	if len(batch) < fullPoll {
		return false
	}
	all := slices.Clone(c.Held)
	for _, one := range batch {
		all = append(all, one.reports...)
	}
	if len(all) == 0 || len(all) > mostHeld {
		return false
	}
	size := 0
	for _, r := range all {
		size += len(r.Message.Text)
	}
	return size <= heldText && now.Sub(time.Unix(all[0].Message.SentAt, 0)) > outage
}

// fresh is how old a cursor may be to be used. After a week without updates
// Telegram numbers them anew, perhaps lower: an old cursor would confirm what
// nobody has seen. Without one Telegram gives what is not confirmed yet.
const fresh = 6 * 24 * time.Hour

// offset is what to ask Telegram for; it confirms all updates below it.
func (c cursor) offset(now time.Time) int64 {
	if now.Sub(time.Unix(c.At, 0)) > fresh {
		return 0
	}
	return c.Next
}

// after is the cursor behind an update that came when offset was asked for.
func (c cursor) after(offset, update int64, now time.Time) cursor {
	next := update + 1
	if offset != 0 { // numbered as before: a straggler does not move it back
		next = max(next, c.Next)
	}
	return cursor{Next: next, At: now.Unix(), Held: c.Held}
}

// load reads the cursor; false means that ctx has ended.
func (p *poller) load(ctx context.Context) bool {
	for n := 1; ; n++ {
		err := p.read(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		p.kernel.SetReadiness(sdk.Offline, "the position in the bot's messages cannot be read: "+err.Error())
		if !pause(ctx, backoff(n)) {
			return false
		}
	}
}

func (p *poller) read(ctx context.Context) error {
	v, err := p.kernel.Get(ctx, p.key)
	if err != nil {
		return err
	}
	p.cursor, p.version = cursor{}, v.Version
	if v.Version == 0 {
		return nil
	}
	if err := v.Decode(&p.cursor); err != nil {
		p.log.Error("the stored cursor cannot be read, starting without", "error", err)
	}
	return nil
}

// arrival is one update as far as the channel cares.
type arrival struct {
	id      int64
	reports []report // at most one; none: nothing to report
}

// decode reads an update; one that does not decode is skipped, loudly.
func (p *poller) decode(raw json.RawMessage) arrival {
	var u models.Update
	if err := json.Unmarshal(raw, &u); err != nil {
		var head struct {
			ID int64 `json:"update_id"`
		}
		_ = json.Unmarshal(raw, &head)
		p.log.Error("an update cannot be read and is skipped", "update", head.ID, "error", err)
		return arrival{id: head.ID}
	}
	m, dedupe, ok := interpret(&u, p.me)
	if !ok {
		return arrival{id: u.ID}
	}
	return arrival{id: u.ID, reports: []report{{Dedupe: dedupe, Message: m}}}
}

// accept stores updates together with the cursor behind them. It returns once
// that is done, or when ctx has ended: then Telegram gives them again.
func (p *poller) accept(ctx context.Context, updates []json.RawMessage, offset int64) {
	batch := make([]arrival, 0, len(updates))
	for _, raw := range updates {
		batch = append(batch, p.decode(raw))
	}
	err := contract.ErrTooLarge
	if p.cursor.holds(batch, time.Now()) {
		err = p.store(ctx, batch, offset, true)
	}
	if hopeless(err) {
		err = p.store(ctx, batch, offset, false)
	}
	if !hopeless(err) {
		return
	}
	// Something cannot be stored, ever: find it, and keep the rest.
	p.release(ctx)
	for _, one := range batch {
		if err := p.store(ctx, []arrival{one}, offset, false); hopeless(err) {
			p.log.Error("a message cannot be stored and is skipped", "update", one.id, "error", err)
			_ = p.store(ctx, []arrival{{id: one.id}}, offset, false)
		}
	}
}

// release reports what is held: all of it at once, or, if that cannot be stored,
// one after the other.
func (p *poller) release(ctx context.Context) {
	if len(p.cursor.Held) == 0 {
		return
	}
	first := func(n int, skip bool) error {
		return p.commit(ctx, func() (sdk.Effects, cursor) {
			next, n := p.cursor, min(n, len(p.cursor.Held))
			next.Held = next.Held[n:]
			if skip {
				return nil, next
			}
			return effectsOf(p.cursor.Held[:n]), next
		})
	}
	if err := first(mostHeld, false); !hopeless(err) {
		return
	}
	for len(p.cursor.Held) > 0 && ctx.Err() == nil {
		if err := first(1, false); hopeless(err) {
			p.log.Error("a message cannot be stored and is skipped", "message", p.cursor.Held[0].Dedupe, "error", err)
			_ = first(1, true)
		}
	}
}

// hopeless reports whether storing the same again must fail again.
func hopeless(err error) bool {
	return errors.Is(err, contract.ErrInvalid) || errors.Is(err, contract.ErrTooLarge)
}

// store commits a batch with the cursor behind it: held, or reported behind all
// that is held. It returns when that is done, hopeless, or ctx has ended.
func (p *poller) store(ctx context.Context, batch []arrival, offset int64, hold bool) error {
	newest := batch[0].id
	var reports []report
	for _, one := range batch {
		newest, reports = max(newest, one.id), append(reports, one.reports...)
	}
	return p.commit(ctx, func() (sdk.Effects, cursor) {
		next := p.cursor.after(offset, newest, time.Now())
		all := append(slices.Clip(next.Held), reports...)
		if next.Held = nil; hold {
			next.Held = all
			return nil, next
		}
		return effectsOf(all), next
	})
}

// commit stores effects together with the cursor; both are made anew if somebody
// else has changed it.
func (p *poller) commit(ctx context.Context, change func() (sdk.Effects, cursor)) error {
	for n := 1; ; n++ {
		effects, next := change()
		results, err := p.kernel.Commit(ctx, append(effects, sdk.PutAt(p.key, next, p.version))...)
		switch {
		case err == nil:
			if n > 1 {
				p.kernel.SetReadiness(sdk.Ready, "@"+p.me.Username)
			}
			p.cursor, p.version = next, results[len(results)-1].GetVersion()
			return nil
		case ctx.Err() != nil || hopeless(err):
			return err
		case errors.Is(err, contract.ErrConflict):
			if p.load(ctx) {
				continue
			}
			return err
		}
		p.log.Warn("messages cannot be stored; Telegram keeps them until they are", "error", err)
		p.kernel.SetReadiness(sdk.Degraded, "messages cannot be stored, and wait at Telegram: "+err.Error())
		if !pause(ctx, backoff(n)) {
			return err
		}
	}
}
