package slackchannel

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/markdown"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/draft"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// maxDraft is the most text of a draft, in UTF-16 units: about the length of the first
// part of the final text.
const maxDraft = 3700

// emptyText replaces the text of a draft that cannot be deleted.
const emptyText = "…"

// draftRecord is the stored message of a draft.
type draftRecord struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}

// SentAt implements draft.Message.
func (r draftRecord) SentAt() time.Time { return sentAt(r.TS) }

func sentAt(ts string) time.Time { return time.Unix(secondsOf(ts), 0) }

// drafter implements draft.Platform.
type drafter struct{ *activation }

// newDrafts returns the drafts of the bot with a token. They are stored by bot: another one
// could not edit them.
func newDrafts(ctx context.Context, a *activation, token string) (*draft.Drafts[target, draftRecord], error) {
	return draft.New(ctx, drafter{a}, a.kernel, botOf(token))
}

// botOf returns what a token tells of its bot: the numbers before its secret part. They
// stay when the token is replaced.
func botOf(token string) string {
	parts := strings.Split(strings.TrimPrefix(token, "xoxb-"), "-")
	n := 0
	for n < len(parts)-1 {
		if _, err := strconv.ParseUint(parts[n], 10, 64); err != nil {
			break
		}
		n++
	}
	return cmp.Or(strings.Join(parts[:n], "-"), "bot")
}

// Reserve implements draft.Platform.
func (d drafter) Reserve(to target) (leave func(), wait time.Duration) {
	ok, wait := d.pace.tryEnter(to.channel)
	if !ok {
		return nil, wait
	}
	return func() {}, 0
}

// Post implements draft.Platform. The place of the draft already has the thread of the
// message that it answers.
func (d drafter) Post(ctx context.Context, to target, _, text string, plain bool) (draftRecord, error) {
	_, ts, err := d.api.PostMessageContext(ctx, to.channel, options(to, preview(text, plain))...)
	return draftRecord{Channel: to.channel, TS: ts}, err
}

// Edit implements draft.Platform.
func (d drafter) Edit(ctx context.Context, _ target, r draftRecord, text string, plain bool) error {
	return d.edit(ctx, r, preview(text, plain))
}

// Failed implements draft.Platform.
func (d drafter) Failed(to target, posted bool, err error) draft.Failure {
	d.log.Debug("draft not shown", "conversation", to.channel, "error", d.api.redact(err))
	switch kind, after := classify(err); {
	case kind == malformed:
		return draft.Plain
	case kind == limited && posted:
		d.pace.block(editing, to.channel, after)
		return draft.Wait
	case kind == limited:
		d.pace.block(posting, to.channel, after)
		return draft.Wait
	case kind == serverError, kind == unreachable, kind == unknown && posted:
		return draft.Repeat
	case kind == badToken:
		d.tokenRefused(err)
	}
	// It was refused, or the outcome of the first message is unknown: there must not be
	// a second one.
	return draft.Mute
}

// preview formats an unfinished text.
func preview(text string, plain bool) rendered {
	text = truncate(text, maxDraft) + draft.Mark
	if plain {
		return plainly(text, nil)
	}
	return render(text, nil)
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
func (a *activation) edit(ctx context.Context, r draftRecord, said rendered) error {
	ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	_, _, _, err := a.api.UpdateMessageContext(ctx, r.Channel, r.TS, options(target{}, said)...)
	return err
}

// Draft implements sdk.Drafter.
func (c *channel) Draft(_ context.Context, d sdk.Draft) {
	a, err := c.usable()
	if err != nil {
		return
	}
	if to, err := parseTarget(d.Conversation, d.Thread, d.ReplyTo); err == nil {
		a.drafts.Update(d, to) //nolint:contextcheck // a draft outlives this call
	}
}

// RemoveDraft implements sdk.DraftRemover.
func (c *channel) RemoveDraft(ctx context.Context, d sdk.Draft) error {
	a, err := c.usable()
	if err != nil {
		return err
	}
	return a.drafts.Remove(ctx, d.ID)
}

// Remove implements draft.Platform.
func (d drafter) Remove(ctx context.Context, r draftRecord) error {
	if err := d.pace.enter(ctx, deleting, r.Channel); err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	_, _, err := d.api.DeleteMessageContext(call, r.Channel, r.TS)
	if err == nil || codeOf(err) == "message_not_found" {
		return nil
	}
	switch kind, after := classify(err); kind {
	case malformed, refused:
		if err := d.edit(ctx, r, plainly(emptyText, nil)); err != nil {
			d.log.Debug("cannot remove a draft", "error", d.api.redact(err))
		}
		return nil
	case unknown:
		return sdk.Retry(serverRetry, err)
	case limited:
		d.pace.block(deleting, r.Channel, after)
		return d.outcome(kind, after, err)
	default:
		return d.outcome(kind, after, err)
	}
}
