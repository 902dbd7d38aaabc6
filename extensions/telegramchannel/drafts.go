package telegramchannel

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract/markdown"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// draftDelay is how long a turn must run before its draft is shown: a quick answer
	// needs none.
	draftDelay = time.Second
	// minDraft is the least text of a draft, in characters.
	minDraft = 40
	// maxDraft is the most text of a draft, in UTF-16 units: about the length of the
	// first part of the final text.
	maxDraft = 3800
	// draftMark ends an unfinished text.
	draftMark = " ▍"
	// draftTimeout bounds one request, which a final text may wait for.
	draftTimeout = 10 * time.Second
	// draftRetry is the pause after a failed request.
	draftRetry = 3 * time.Second
	// maxEnded bounds the ended drafts that are remembered.
	maxEnded = 1024
)

// drafter shows drafts: one message for each turn, edited as its text grows.
//
// A draft has at most one running request, for its newest text, and only if the pacer
// has spare budget; updates in between are skipped. The message id of a draft is
// stored before its first edit and until the final text was acknowledged, so the final
// text finds its message even after a crash.
type drafter struct {
	*activation
	ctx   context.Context
	store *draftStore

	mu      sync.Mutex
	byID    map[string]*draft
	ended   []string // ids of delivered ones, oldest first
	stopped bool
	calls   sync.WaitGroup
}

// draft is the text of one turn.
type draft struct {
	id      string
	to      target
	replyTo int
	began   time.Time

	text         string // the newest text
	shown        string // text of the message
	unknownState bool   // the text of the message is unknown

	message int           // 0: none
	plain   bool          // Telegram refused its formatting
	muted   bool          // not updated anymore
	final   bool          // its turn has ended
	settled bool          // the final text was delivered
	request chan struct{} // closed at the end of the running request; nil: none
	timer   *time.Timer   // calls refresh
}

// newDrafter returns a drafter with the drafts of an earlier process.
func newDrafter(ctx context.Context, a *activation, token string) (*drafter, error) {
	d := &drafter{activation: a, ctx: ctx, store: newDraftStore(a.kernel, token), byID: map[string]*draft{}}
	records, err := d.store.load(ctx)
	if err != nil {
		return nil, err
	}
	for id, r := range records {
		d.byID[id] = &draft{
			id: id, to: target{chat: r.Chat, topic: r.Topic}, began: time.Unix(r.At, 0), message: r.Message, unknownState: true,
		}
	}
	return d, nil
}

// update takes the newest text of a draft, and reports whether its turn is still
// running. It never blocks.
func (d *drafter) update(u sdk.Draft, to target) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.byID[u.ID]
	switch {
	case d.stopped || f != nil && f.final:
		return false
	case u.ID == "" || u.Done && f == nil:
		return !u.Done
	case f == nil:
		f = &draft{id: u.ID, to: to, replyTo: parseMessageID(u.ReplyTo), began: time.Now()}
		d.byID[u.ID] = f
	}
	if u.Done {
		f.stopTimer()
		return false
	}
	f.text = u.Text
	d.refresh(f)
	return true
}

// refresh shows the newest text if it has changed and the pacer has budget; without
// budget it runs again later. mu is held.
func (d *drafter) refresh(f *draft) {
	text := strings.TrimSpace(f.text)
	if d.stopped || f.final || f.muted || f.request != nil || f.timer != nil || text == "" ||
		text == f.shown && !f.unknownState {
		return
	}
	if f.message == 0 {
		if len([]rune(text)) < minDraft {
			return
		}
		if early := draftDelay - time.Since(f.began); early > 0 {
			d.refreshAfter(f, early)
			return
		}
	}
	leave, wait := d.pace.tryEnter(f.to.chat)
	if leave == nil {
		d.refreshAfter(f, wait)
		return
	}
	f.request = make(chan struct{})
	d.calls.Go(func() {
		d.show(f, text)
		leave()
		d.mu.Lock()
		defer d.mu.Unlock()
		close(f.request)
		f.request = nil
		d.refresh(f)
	})
}

// refreshAfter calls refresh after a time; mu is held.
func (d *drafter) refreshAfter(f *draft, after time.Duration) {
	f.timer = time.AfterFunc(after, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if f.timer != nil {
			f.timer = nil
			d.refresh(f)
		}
	})
}

func (f *draft) stopTimer() {
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
}

// show sends or edits the message of a draft.
func (d *drafter) show(f *draft, text string) {
	d.mu.Lock()
	message, plain := f.message, f.plain
	d.mu.Unlock()
	said, entities := preview(text, plain)
	ctx, cancel := context.WithTimeout(d.ctx, draftTimeout)
	defer cancel()
	var err error
	if message == 0 {
		p := newMessage(f.to, f.replyTo)
		p.Text, p.Entities = said, entities
		var sent *models.Message
		if sent, err = d.api.bot.SendMessage(ctx, p); err == nil {
			message = sent.ID
			d.record(f, message)
		}
	} else if err = d.edit(ctx, f.to.chat, message, said, entities); isUnchanged(err) {
		err = nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		f.message, f.shown, f.unknownState = message, text, false
		d.typing.postpone(f.to)
		return
	}
	d.requestFailed(f, err, entities != nil)
}

// record stores the message of a draft, and once a day deletes old drafts.
func (d *drafter) record(f *draft, message int) {
	now := time.Now()
	if err := d.store.save(d.ctx, f.id,
		draftRecord{Chat: f.to.chat, Topic: f.to.topic, Message: message, At: now.Unix()}); err != nil {
		d.log.Warn("store the message of a draft; it may be left over after a crash", "draft", f.id, "error", err)
	}
	if !d.store.pruneDue(now) {
		return
	}
	if _, err := d.store.load(d.ctx); err != nil {
		d.log.Warn("delete old drafts", "error", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, old := range d.byID {
		if now.Sub(old.began) > maxDraftAge && old.request == nil {
			old.stopTimer()
			delete(d.byID, id)
		}
	}
}

// requestFailed handles a failed request of a draft; mu is held.
func (d *drafter) requestFailed(f *draft, err error, formatted bool) {
	kind, after := classify(err)
	f.unknownState = f.message != 0
	switch {
	case kind == malformed && formatted && !isAboutChat(err) && !isLost(err):
		f.plain = true
		return
	case kind == limited:
		d.pace.block(f.to.chat, after)
	case kind == serverError, kind == unreachable, kind == unknown && f.message != 0:
		d.refreshAfter(f, draftRetry)
	default:
		// It was refused, or the outcome of the first message is unknown: there must
		// not be a second one.
		f.muted = true
	}
	d.log.Debug("draft not shown", "draft", f.id, "error", d.api.redact(err))
}

// finish ends a draft and returns its message; 0: none. It waits for the running
// request, whose text must not arrive after the final one.
func (d *drafter) finish(ctx context.Context, id string) (where target, message int, err error) {
	if id == "" {
		return target{}, 0, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.byID[id]
	if f == nil {
		f = &draft{id: id, began: time.Now()}
		d.byID[id] = f
	}
	f.final = true
	f.stopTimer()
	for underway := f.request; underway != nil; underway = f.request {
		d.mu.Unlock()
		ended := waitFor(ctx, underway)
		d.mu.Lock()
		if !ended {
			return target{}, 0, sdk.Retry(time.Second, context.Cause(ctx))
		}
	}
	return f.to, f.message, nil
}

func waitFor(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// finalDelivered is called after the final text of a draft was delivered, and returns
// the effects to commit. The draft is remembered for a while: its late updates are
// ignored, and if the commit fails, the repeated final text finds its message.
func (d *drafter) finalDelivered(id string) sdk.Effects {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.byID[id]
	if f == nil {
		return nil
	}
	if !f.settled {
		f.settled = true
		if d.ended = append(d.ended, id); len(d.ended) > maxEnded {
			delete(d.byID, d.ended[0])
			d.ended = d.ended[1:]
		}
	}
	if f.message == 0 {
		return nil
	}
	return sdk.Effects{d.store.remove(id)}
}

// stop ends all drafts and waits for their requests, whose context has ended.
func (d *drafter) stop() {
	d.mu.Lock()
	d.stopped = true
	for _, f := range d.byID {
		f.stopTimer()
	}
	d.mu.Unlock()
	d.calls.Wait()
}

// preview formats an unfinished text.
func preview(text string, plain bool) (string, []models.MessageEntity) {
	text = truncate(text, maxDraft)
	if plain {
		return text + draftMark, nil
	}
	said, entities := render(text)
	if markdown.Len(said)+markdown.Len(draftMark) > maxText {
		said, entities = text, nil
	}
	return said + draftMark, entities
}

// truncate shortens a text to n UTF-16 units.
func truncate(text string, n int) string {
	for i, r := range text {
		if n -= markdown.Len(string(r)); n < 0 {
			return text[:i]
		}
	}
	return text
}

// edit changes a message of the bot.
func (a *activation) edit(
	ctx context.Context, chat int64, message int, text string, entities []models.MessageEntity,
) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := a.api.bot.EditMessageText(ctx, &bot.EditMessageTextParams{
		ChatID: chat, MessageID: message, Text: text, Entities: entities,
	})
	return err
}

// isUnchanged reports whether an edit was refused because it changes nothing.
func isUnchanged(err error) bool {
	return err != nil && strings.Contains(err.Error(), "message is not modified")
}

// isLost reports whether a message is gone or can no longer be changed.
func isLost(err error) bool {
	return containsAny(err.Error(), "message to edit not found", "message can't be edited",
		"message to delete not found", "message can't be deleted", "MESSAGE_ID_INVALID")
}

func containsAny(text string, substrings ...string) bool {
	return slices.ContainsFunc(substrings, func(s string) bool { return strings.Contains(text, s) })
}
