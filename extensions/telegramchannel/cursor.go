package telegramchannel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

// cursor is the stored position: the id of the next update, and the time it was set.
type cursor struct {
	Next int64 `json:"next"`
	At   int64 `json:"at"` // Unix seconds
	// Held are earlier messages that are not published yet.
	Held []*pendingMessage `json:"held,omitempty"`
	// Parts are the newest updates that are parts of albums. An album is published under
	// the dedupe key of its first part only.
	Parts []int64 `json:"parts,omitempty"`
}

// maxParts bounds the parts that are remembered.
const maxParts = 200

// After an outage Telegram returns the waiting messages in several polls, and each
// chat should get one reply. So old messages are held until the last poll. They are
// held in the store, because the next poll confirms them.
const (
	holdAge      = time.Hour // age from which agents answer messages together
	maxHeld      = 1000      // messages
	maxHeldBytes = 256 << 10 // bytes of their texts
	pollLimit    = 100       // updates: there may be more
)

// holds reports whether a batch is to be held.
func (c cursor) shouldHold(batch []update, now time.Time) bool {
	if len(batch) < pollLimit {
		return false
	}
	all := slices.Clone(c.Held)
	for _, one := range batch {
		all = append(all, one.reports...)
	}
	if len(all) == 0 || len(all) > maxHeld {
		return false
	}
	size := 0
	for _, r := range all {
		size += len(r.Message.Text)
	}
	return size <= maxHeldBytes && now.Sub(time.Unix(all[0].Message.SentAt, 0)) > holdAge
}

// maxCursorAge is how long a cursor is valid. After a week without updates Telegram
// restarts their numbers, possibly lower, so an old cursor would confirm unread
// updates. Without a cursor Telegram returns all unconfirmed updates.
const maxCursorAge = 6 * 24 * time.Hour

// offset returns the offset of the next poll, which confirms all updates below it.
func (c cursor) offset(now time.Time) int64 {
	if now.Sub(time.Unix(c.At, 0)) > maxCursorAge {
		return 0
	}
	return c.Next
}

// after returns the cursor after an update of a poll with offset.
func (c cursor) after(offset, id int64, now time.Time) cursor {
	next := id + 1
	if offset != 0 { // same numbering: a late update does not move it back
		next = max(next, c.Next)
	}
	return cursor{Next: next, At: now.Unix(), Held: c.Held, Parts: c.Parts}
}

// load reads the cursor or the backlog, with retries; false: ctx has ended.
func (p *poller) load(ctx context.Context, read func(context.Context) error) bool {
	for n := 1; ; n++ {
		err := read(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		p.kernel.SetReadiness(sdk.Offline, words.Sprintf("read the position in the bot's messages: %s", err))
		if !pause.For(ctx, pause.Backoff(n)) {
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
		p.log.Error("decode the stored cursor; starting without it", "error", err)
	}
	return nil
}

// update is a parsed update.
type update struct {
	id      int64
	reports []*pendingMessage // at most one; none: nothing to publish
}

// essentials are the fields of a message that its text needs, and media those of its
// attachment.
var (
	essentials = []string{
		"message_id", "from", "chat", "date", "edit_date", "text", "entities", "caption", "caption_entities",
		"message_thread_id",
		"is_topic_message", "reply_to_message", "quote",
	}
	media = []string{
		"photo", "document", "voice", "audio", "video", "video_note", "animation", "sticker", "location", "contact",
		"media_group_id",
	}
)

// decodeText parses an update that has something in it that this version doesn't know,
// such as a new origin of forwarded messages: a person's text must not be lost for it.
func decodeText(raw json.RawMessage, needed []string) (u models.Update, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return u, err
	}
	forwarded := false
	for _, kind := range []string{"message", "edited_message"} {
		var message map[string]json.RawMessage
		if fields[kind] == nil {
			continue
		}
		if err := json.Unmarshal(fields[kind], &message); err != nil {
			return u, err
		}
		_, forwarded = message["forward_origin"]
		maps.DeleteFunc(message, func(name string, _ json.RawMessage) bool { return !slices.Contains(needed, name) })
		if fields[kind], err = json.Marshal(message); err != nil {
			return u, err
		}
	}
	if raw, err = json.Marshal(fields); err == nil {
		err = json.Unmarshal(raw, &u)
	}
	if message := cmp.Or(u.Message, u.EditedMessage); message != nil && forwarded {
		message.ForwardOrigin = &models.MessageOrigin{} // an unknown one
	}
	return u, err
}

// decode parses an update; an invalid one is logged and skipped.
func (p *poller) decode(raw json.RawMessage) update {
	var u models.Update
	err := json.Unmarshal(raw, &u)
	if err != nil {
		u, err = decodeText(raw, slices.Concat(essentials, media))
	}
	if err != nil {
		u, err = decodeText(raw, essentials)
	}
	if err != nil {
		var head struct {
			ID int64 `json:"update_id"`
		}
		_ = json.Unmarshal(raw, &head)
		p.log.Error("decode an update; skipping it", "update", head.ID, "error", err)
		return update{id: head.ID}
	}
	m := parseUpdate(&u, p.me, &p.recent)
	if m == nil {
		return update{id: u.ID}
	}
	return update{id: u.ID, reports: []*pendingMessage{m}}
}

// accept stores updates with the cursor after them. It returns when they are stored,
// or when ctx has ended: then Telegram returns them again.
func (p *poller) accept(ctx context.Context, updates []json.RawMessage, offset int64) {
	batch := make([]update, 0, len(updates))
	for _, raw := range updates {
		batch = append(batch, p.decode(raw))
	}
	p.sortAlbums(batch)
	err := contract.ErrTooLarge
	if p.cursor.shouldHold(batch, time.Now()) {
		err = p.store(ctx, batch, offset, true)
	}
	if sdk.IsPermanent(err) {
		p.backlog.fetchNow(ctx, batch)
		err = p.store(ctx, batch, offset, false)
	}
	if errors.Is(err, contract.ErrNotFound) { // it took so long that a file is no longer stored
		for _, one := range batch {
			forget(one.reports)
		}
		err = p.store(ctx, batch, offset, false)
	}
	if !sdk.IsPermanent(err) {
		return
	}
	// One update can never be stored: store the others one by one.
	p.release(ctx)
	for _, one := range batch {
		if err := p.store(ctx, []update{one}, offset, false); sdk.IsPermanent(err) {
			p.log.Error("store a message; skipping it", "update", one.id, "error", err)
			_ = p.store(ctx, []update{{id: one.id}}, offset, false)
		}
	}
}

// sortAlbums drops the parts of albums that are known, and in groups those of which no part
// is for the bot.
func (p *poller) sortAlbums(batch []update) {
	addressed := map[string]bool{}
	for _, one := range batch {
		for _, m := range one.reports {
			if m.Album != "" && !m.unaddressed {
				addressed[m.conversation()+m.Album] = true
			}
		}
	}
	for i, one := range batch {
		batch[i].reports = slices.DeleteFunc(one.reports, func(m *pendingMessage) bool {
			return m.Album != "" && (slices.Contains(p.cursor.Parts, m.Update) ||
				m.unaddressed && !addressed[m.conversation()+m.Album] && !p.backlog.hasAlbum(m))
		})
	}
}

// release publishes the held messages: all at once, or one by one if that fails
// permanently.
func (p *poller) release(ctx context.Context) {
	if len(p.cursor.Held) == 0 {
		return
	}
	first := func(n int, skip bool) error {
		return p.commit(ctx, func() ([]*pendingMessage, sdk.Effects, cursor) {
			next, n := p.cursor, min(n, len(p.cursor.Held))
			next.Held = next.Held[n:]
			if skip {
				return nil, nil, next
			}
			return p.cursor.Held[:n], nil, next
		})
	}
	if err := first(maxHeld, false); !sdk.IsPermanent(err) {
		return
	}
	for len(p.cursor.Held) > 0 && ctx.Err() == nil {
		if err := first(1, false); sdk.IsPermanent(err) {
			p.log.Error("store a message; skipping it", "message", p.cursor.Held[0].Dedupe, "error", err)
			_ = first(1, true)
		}
	}
}

// store commits a batch with the cursor after it: held, or published after all held
// messages. What has files to download is stored for the backlog. It retries until it
// succeeds, fails permanently, or ctx has ended.
func (p *poller) store(ctx context.Context, batch []update, offset int64, hold bool) error {
	newest := batch[0].id
	var reports []*pendingMessage
	for _, one := range batch {
		newest, reports = max(newest, one.id), append(reports, one.reports...)
	}
	var waiting []*pendingMessage
	err := p.commit(ctx, func() ([]*pendingMessage, sdk.Effects, cursor) {
		next := p.cursor.after(offset, newest, time.Now())
		all := slices.Clip(next.Held)
		waits := map[string]bool{} // conversations
		var effects sdk.Effects
		waiting = nil
		for _, m := range reports {
			if m.Album != "" {
				next.Parts = append(slices.Clip(next.Parts), m.Update)
				next.Parts = next.Parts[max(0, len(next.Parts)-maxParts):]
			}
			c := m.conversation()
			if waits[c] = waits[c] || m.Album != "" || m.unfetched() || p.backlog.holds(c); waits[c] {
				waiting = append(waiting, m)
				effects = append(effects, p.backlog.put(m))
			} else {
				all = append(all, m)
			}
		}
		if next.Held = nil; hold {
			next.Held = all
			return nil, effects, next
		}
		return all, effects, next
	})
	if err == nil {
		p.backlog.add(waiting)
	}
	return err
}

// commit publishes messages, and commits effects and the cursor with them. After a conflict
// it reads the cursor and calls change again.
func (p *poller) commit(ctx context.Context, change func() ([]*pendingMessage, sdk.Effects, cursor)) error {
	for n := 1; ; n++ {
		messages, more, next := change()
		effects := append(p.presses.publish(messages), more...)
		results, err := p.kernel.Commit(ctx, append(effects, sdk.PutAt(p.key, next, p.version))...)
		switch {
		case err == nil:
			if n > 1 {
				p.kernel.SetReadiness(sdk.Ready, "@"+p.me.Username)
			}
			p.cursor, p.version = next, results[len(results)-1].GetVersion()
			p.backlog.pause(len(next.Held) > 0)
			p.presses.published(ctx, messages, results)
			return nil
		case ctx.Err() != nil || sdk.IsPermanent(err) || errors.Is(err, contract.ErrNotFound):
			return err
		case errors.Is(err, contract.ErrConflict):
			if p.load(ctx, p.read) {
				continue
			}
			return err
		}
		p.log.Warn("store messages; Telegram keeps them until they are stored", "error", err)
		p.kernel.SetReadiness(sdk.Degraded, words.Sprintf("new messages cannot be stored and wait at Telegram: %s", err))
		if !pause.For(ctx, pause.Backoff(n)) {
			return err
		}
	}
}
