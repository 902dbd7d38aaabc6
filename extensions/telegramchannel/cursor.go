package telegramchannel

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// cursor is the stored position: the id of the next update, and when it was set.
type cursor struct {
	Next int64 `json:"next"`
	At   int64 `json:"at"` // Unix seconds
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
	return cursor{Next: next, At: now.Unix()}
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
	id     int64
	report sdk.Effects // at most one; none: nothing to report
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
	return arrival{id: u.ID, report: sdk.Effects{sdk.Publish(contract.TopicUserMessage, m, sdk.Dedupe(dedupe))}}
}

// accept stores updates together with the cursor behind them. It returns once
// that is done, or when ctx has ended: then Telegram gives them again.
func (p *poller) accept(ctx context.Context, updates []json.RawMessage, offset int64) {
	batch := make([]arrival, 0, len(updates))
	for _, raw := range updates {
		batch = append(batch, p.decode(raw))
	}
	if err := p.store(ctx, batch, offset); !hopeless(err) {
		return
	}
	// Something in the batch cannot be stored, ever: find it, and keep the rest.
	for _, one := range batch {
		if err := p.store(ctx, []arrival{one}, offset); hopeless(err) {
			p.log.Error("a message cannot be stored and is skipped", "update", one.id, "error", err)
			_ = p.store(ctx, []arrival{{id: one.id}}, offset)
		}
	}
}

// hopeless reports whether storing the same again must fail again.
func hopeless(err error) bool {
	return errors.Is(err, contract.ErrInvalid) || errors.Is(err, contract.ErrTooLarge)
}

// store commits a batch, until it is done, hopeless, or ctx has ended.
func (p *poller) store(ctx context.Context, batch []arrival, offset int64) error {
	for n := 1; ; n++ {
		var effects sdk.Effects
		newest := batch[0].id
		for _, one := range batch {
			effects = append(effects, one.report...)
			newest = max(newest, one.id)
		}
		next := p.cursor.after(offset, newest, time.Now())
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
