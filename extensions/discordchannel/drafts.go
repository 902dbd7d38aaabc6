package discordchannel

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract/markdown"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/draft"
)

// maxDraft is the most text of a draft, in UTF-16 units: about the length of the first
// part of the final text.
const maxDraft = 1900

// errGone says that a message cannot be changed.
var errGone = errors.New("the message is gone")

// draftRecord is the stored message of a draft.
type draftRecord struct {
	Channel string `json:"channel"`
	Message string `json:"message"`
	At      int64  `json:"at"` // Unix seconds
}

// SentAt implements draft.Message.
func (r draftRecord) SentAt() time.Time { return time.Unix(r.At, 0) }

// address is where a draft is shown.
type address struct {
	to target
	id string // of the draft
}

// drafter implements draft.Platform.
type drafter struct {
	*activation

	mu   sync.Mutex
	busy map[target]time.Time // no draft before this time
}

// newDrafts returns the drafts of the bot with a token. They are stored by bot: another
// bot could not edit them.
func newDrafts(ctx context.Context, a *activation, token string) (*draft.Drafts[address, draftRecord], error) {
	return draft.New(ctx, &drafter{activation: a, busy: map[target]time.Time{}}, a.kernel, botOf(token))
}

// botOf returns the bot's id, which a token begins with.
func botOf(token string) string {
	head, _, _ := strings.Cut(token, ".")
	id, err := base64.RawStdEncoding.DecodeString(head)
	if err != nil || !isID(string(id)) {
		return head
	}
	return string(id)
}

// Reserve implements draft.Platform. The limits are those of the request.
func (d *drafter) Reserve(to address) (leave func(), wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if wait = time.Until(d.busy[to.to]); wait > 0 {
		return nil, wait
	}
	delete(d.busy, to.to)
	return func() {}, 0
}

// Post implements draft.Platform.
func (d *drafter) Post(ctx context.Context, to address, replyTo, text string, plain bool) (draftRecord, error) {
	said := preview(text, plain)
	sent := &message{}
	err := d.api.do(ctx, request{method: http.MethodPost, path: messagesOf(to.to), spare: true, body: newMessage{
		Content: &said, Nonce: d.nonceOfDraft(to.id), EnforceNonce: true, Components: []component{},
		Reference: d.reference(to.to, sdk.Message{ReplyTo: replyTo}), Mentions: mentions{Parse: []string{}},
	}}, sent)
	if err != nil {
		return draftRecord{}, err
	}
	d.typing.Postpone(to.to)
	return draftRecord{Channel: string(to.to), Message: sent.ID, At: time.Now().Unix()}, nil
}

// nonceOfDraft is that of the final text, so that it finds a draft whose id was lost. In a
// cluster a draft has its own: that of another node is deleted, and what is sent with the
// nonce of a deleted message may not arrive.
func (d *drafter) nonceOfDraft(id string) string {
	if node := d.kernel.Node(); node != "" {
		return nonce("draft", id, node)
	}
	return nonce("draft", id)
}

// Edit implements draft.Platform.
func (d *drafter) Edit(ctx context.Context, to address, r draftRecord, text string, plain bool) error {
	said := preview(text, plain)
	err := d.api.do(ctx, request{
		method: http.MethodPatch, path: messagesOf(target(r.Channel)) + "/" + r.Message, spare: true,
		body: newMessage{Content: &said, Components: []component{}, Mentions: mentions{Parse: []string{}}},
	}, nil)
	if err == nil {
		d.typing.Postpone(to.to)
	}
	return err
}

// Failed implements draft.Platform.
func (d *drafter) Failed(to address, _ bool, err error) draft.Failure {
	d.log.Debug("draft not shown", "channel", to.to, "error", d.api.redact(err))
	switch kind, after := classify(err); {
	case kind == limited:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.busy[to.to] = time.Now().Add(max(after, 50*time.Millisecond))
		return draft.Wait
	case hasCode(err, codeInvalidBody):
		return draft.Plain
	case kind == serverError, kind == unreachable, kind == unknown: // by its nonce, a message is sent once
		return draft.Repeat
	}
	return draft.Mute
}

// preview formats an unfinished text.
func preview(text string, plain bool) string {
	text = truncate(text, maxDraft)
	if plain {
		return text + draft.Mark
	}
	said := render(text)
	if markdown.Len(said)+markdown.Len(draft.Mark) > maxText {
		said = text
	}
	return said + draft.Mark
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

// Draft implements sdk.Drafter.
func (c *channel) Draft(_ context.Context, d sdk.Draft) {
	a, err := c.usable()
	if err != nil {
		return
	}
	to, err := parseTarget(d.Conversation, d.Thread)
	if err != nil {
		return
	}
	switch running := a.drafts.Update(d, address{to, d.ID}); { //nolint:contextcheck // a draft outlives this call
	case running:
		a.typing.Show(to) //nolint:contextcheck // so does the indicator
	case d.Done:
		a.typing.Hide(to)
	}
}

// change changes a message of the bot to a text, which needs no mark of a repetition. An
// unknown
// outcome is retried, because a repeated change changes nothing. The error is errGone if
// there is no such message any more.
func (a *activation) change(ctx context.Context, to target, id string, m sdk.Message) (sdk.Receipt, error) {
	text := render(m.Unmarked)
	for {
		err := a.api.do(ctx, request{method: http.MethodPatch, path: messagesOf(to) + "/" + id, body: newMessage{
			Content: &text, Components: buttons(m.Actions), Mentions: mentions{Parse: []string{}},
		}}, nil)
		if err == nil {
			return a.receipt(to, id, m), nil
		}
		kind, after := classify(err)
		switch {
		case hasCode(err, codeInvalidBody) && text != m.Unmarked:
			a.log.Warn("Discord refused the formatting; sending the text as it is", "error", a.api.redact(err))
			text = m.Unmarked
			continue
		case hasCode(err, codeUnknownMessage):
			a.log.Info("cannot edit a message; sending its text as a new one", "error", a.api.redact(err))
			return sdk.Receipt{}, errGone
		case kind == unknown:
			return sdk.Receipt{}, sdk.Retry(serverRetry, fmt.Errorf("no answer from Discord: %s", a.api.redact(err)))
		}
		return sdk.Receipt{}, a.outcome(kind, after, err)
	}
}

// RemoveDraft implements sdk.DraftRemover.
func (c *channel) RemoveDraft(ctx context.Context, d sdk.Draft) error {
	a, err := c.usable()
	if err != nil {
		return err
	}
	if to, err := parseTarget(d.Conversation, d.Thread); err == nil {
		a.typing.Hide(to)
	}
	return a.drafts.Remove(ctx, d.ID)
}

// Remove implements draft.Platform.
func (d *drafter) Remove(ctx context.Context, r draftRecord) error {
	err := d.api.do(ctx, request{
		method: http.MethodDelete, path: messagesOf(target(r.Channel)) + "/" + r.Message,
	}, nil)
	if err == nil {
		return nil
	}
	switch kind, after := classify(err); kind {
	case refused:
		if !hasCode(err, codeUnknownMessage) {
			d.log.Info("cannot remove a draft", "error", d.api.redact(err))
		}
		return nil
	case unknown:
		return sdk.Retry(serverRetry, fmt.Errorf("no answer from Discord: %s", d.api.redact(err)))
	default:
		return d.outcome(kind, after, err)
	}
}
