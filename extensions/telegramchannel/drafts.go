package telegramchannel

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/extensions/telegramchannel/markup"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// draftDelay is how long a turn has to run before its text is shown: what is
	// there at once needs no draft.
	draftDelay = time.Second
	// draftLength is how much text a draft begins with, in characters.
	draftLength = 40
	// draftRoom is how much of a long text a draft shows, in UTF-16 units: about
	// what the first part of the final text will have.
	draftRoom = 3800
	// draftMark ends a text that is still being written.
	draftMark = " ▍"
	// draftCall bounds one request; a final text may have to wait for it.
	draftCall = 10 * time.Second
	// draftPause is how long to wait after a request that failed.
	draftPause = 3 * time.Second
	// manyEnded is how many drafts whose turns have ended are remembered.
	manyEnded = 1024
)

// drafter shows drafts: one message for each turn, edited as its text grows.
//
// A draft has one request under way at most, always for its newest text, and
// only when the pacer has something to spare; what comes too often is not shown.
// The message of a draft is in the store before it is edited for the first time
// and until the final text has been acknowledged, so whoever has that text knows
// which message it belongs into, whatever was killed meanwhile.
type drafter struct {
	*activation
	ctx   context.Context
	store *draftStore

	mu    sync.Mutex
	byID  map[string]*draft
	ended []string // ids of settled ones, oldest first
	over  bool
	calls sync.WaitGroup
}

// draft is the text of one turn.
type draft struct {
	id      string
	to      place
	replyTo int
	began   time.Time

	text  string // the newest
	shown string // what the message says
	stale bool   // what the message says is not known

	message  int           // 0: none
	plain    bool          // Telegram refuses it formatted
	mute     bool          // nothing more is shown
	final    bool          // its turn has ended
	settled  bool          // and the final text was delivered
	underway chan struct{} // closed when the request under way has ended; nil: none
	timer    *time.Timer   // looks again
}

// newDrafter knows the drafts that an earlier process has left.
func newDrafter(ctx context.Context, a *activation, token string) (*drafter, error) {
	d := &drafter{activation: a, ctx: ctx, store: newDraftStore(a.kernel, token), byID: map[string]*draft{}}
	records, err := d.store.load(ctx)
	if err != nil {
		return nil, err
	}
	for id, r := range records {
		d.byID[id] = &draft{
			id: id, to: place{chat: r.Chat, topic: r.Topic}, began: time.Unix(r.At, 0), message: r.Message, stale: true,
		}
	}
	return d, nil
}

// update takes the newest text of a draft, and says whether its turn is still
// running. It never waits.
func (d *drafter) update(u sdk.Draft, to place) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.byID[u.ID]
	switch {
	case d.over || f != nil && f.final:
		return false
	case u.ID == "" || u.Done && f == nil:
		return !u.Done
	case f == nil:
		f = &draft{id: u.ID, to: to, replyTo: messageID(u.ReplyTo), began: time.Now()}
		d.byID[u.ID] = f
	}
	if u.Done {
		f.halt()
		return false
	}
	f.text = u.Text
	d.look(f)
	return true
}

// look shows the newest text if there is need and room for it; if there is need
// only, it looks again later. mu is held.
func (d *drafter) look(f *draft) {
	text := strings.TrimSpace(f.text)
	if d.over || f.final || f.mute || f.underway != nil || f.timer != nil || text == "" || text == f.shown && !f.stale {
		return
	}
	if f.message == 0 {
		if len([]rune(text)) < draftLength {
			return
		}
		if early := draftDelay - time.Since(f.began); early > 0 {
			d.lookIn(f, early)
			return
		}
	}
	leave, wait := d.pace.spare(f.to.chat)
	if leave == nil {
		d.lookIn(f, wait)
		return
	}
	f.underway = make(chan struct{})
	d.calls.Go(func() {
		d.show(f, text)
		leave()
		d.mu.Lock()
		defer d.mu.Unlock()
		close(f.underway)
		f.underway = nil
		d.look(f)
	})
}

// lookIn looks again after a time; mu is held.
func (d *drafter) lookIn(f *draft, after time.Duration) {
	f.timer = time.AfterFunc(after, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if f.timer != nil {
			f.timer = nil
			d.look(f)
		}
	})
}

func (f *draft) halt() {
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
}

// show makes the message of a draft say the text.
func (d *drafter) show(f *draft, text string) {
	d.mu.Lock()
	message, plain := f.message, f.plain
	d.mu.Unlock()
	said, entities := preview(text, plain)
	ctx, cancel := context.WithTimeout(d.ctx, draftCall)
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
	} else if err = d.edit(ctx, f.to.chat, message, said, entities); unchanged(err) {
		err = nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		f.message, f.shown, f.stale = message, text, false
		d.typing.rest(f.to)
		return
	}
	d.failed(f, err, entities != nil)
}

// record stores the message of a draft, and once a day forgets what is too old.
func (d *drafter) record(f *draft, message int) {
	now := time.Now()
	if err := d.store.put(d.ctx, f.id, record{Chat: f.to.chat, Topic: f.to.topic, Message: message, At: now.Unix()}); err != nil {
		d.log.Warn("the message of a draft could not be stored: it is left behind if this process ends now", "draft", f.id, "error", err)
	}
	if !d.store.due(now) {
		return
	}
	if _, err := d.store.load(d.ctx); err != nil {
		d.log.Warn("old drafts are not forgotten", "error", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, old := range d.byID {
		if now.Sub(old.began) > draftAge && old.underway == nil {
			old.halt()
			delete(d.byID, id)
		}
	}
}

// failed decides what becomes of a draft whose request failed; mu is held.
func (d *drafter) failed(f *draft, err error, formatted bool) {
	kind, after := classify(err)
	f.stale = f.message != 0
	switch {
	case kind == malformed && formatted && !aboutChat(err) && !lost(err):
		f.plain = true
		return
	case kind == limited:
		d.pace.close(f.to.chat, after)
	case kind == serverError, kind == unreachable, kind == unknown && f.message != 0:
		d.lookIn(f, draftPause)
	default:
		// It is refused, or has no message to be shown in: there may be one that
		// nobody knows, and there must not be two.
		f.mute = true
	}
	d.log.Debug("a draft is not shown", "draft", f.id, "error", d.api.redact(err))
}

// finish ends a draft for good and returns its message, 0 if there is none. It
// waits for the request under way: its text must not come after the final one.
func (d *drafter) finish(ctx context.Context, id string) (where place, message int, err error) {
	if id == "" {
		return place{}, 0, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.byID[id]
	if f == nil {
		f = &draft{id: id, began: time.Now()}
		d.byID[id] = f
	}
	f.final = true
	f.halt()
	for underway := f.underway; underway != nil; underway = f.underway {
		d.mu.Unlock()
		ended := await(ctx, underway)
		d.mu.Lock()
		if !ended {
			return place{}, 0, sdk.Retry(time.Second, context.Cause(ctx))
		}
	}
	return f.to, f.message, nil
}

func await(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// settled is called when the final text of a draft has got where it belongs. It
// returns what is to be committed with that. The draft is remembered for a while:
// late texts of it are ignored, and if the commit fails the final text comes
// again and finds its message.
func (d *drafter) settled(id string) sdk.Effects {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.byID[id]
	if f == nil {
		return nil
	}
	if !f.settled {
		f.settled = true
		if d.ended = append(d.ended, id); len(d.ended) > manyEnded {
			delete(d.byID, d.ended[0])
			d.ended = d.ended[1:]
		}
	}
	if f.message == 0 {
		return nil
	}
	return sdk.Effects{d.store.forget(id)}
}

// stop ends all drafts and waits for the requests under way, whose context has ended.
func (d *drafter) stop() {
	d.mu.Lock()
	d.over = true
	for _, f := range d.byID {
		f.halt()
	}
	d.mu.Unlock()
	d.calls.Wait()
}

// preview is the message of an unfinished text.
func preview(text string, plain bool) (string, []models.MessageEntity) {
	text = head(text, draftRoom)
	if plain {
		return text + draftMark, nil
	}
	said, entities := render(text)
	if markup.Len(said)+markup.Len(draftMark) > maxText {
		said, entities = text, nil
	}
	return said + draftMark, entities
}

// head is the beginning of a text, at most n UTF-16 units.
func head(text string, n int) string {
	for i, r := range text {
		if n -= markup.Len(string(r)); n < 0 {
			return text[:i]
		}
	}
	return text
}

// edit changes a message of the bot.
func (a *activation) edit(ctx context.Context, chat int64, message int, text string, entities []models.MessageEntity) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := a.api.bot.EditMessageText(ctx, &bot.EditMessageTextParams{ChatID: chat, MessageID: message, Text: text, Entities: entities})
	return err
}

// unchanged reports whether an edit was refused because the message says so already.
func unchanged(err error) bool {
	return err != nil && strings.Contains(err.Error(), "message is not modified")
}

// lost reports whether a message is not there, or cannot be changed any more.
func lost(err error) bool {
	text := err.Error()
	for _, s := range []string{"message to edit not found", "message can't be edited", "message to delete not found", "message can't be deleted", "MESSAGE_ID_INVALID"} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}
