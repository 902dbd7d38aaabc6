package telegramchannel

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-telegram/bot"

	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// emptyText replaces the text of a draft that is too old to be deleted.
const emptyText = "…"

// errDraftGone says that the message of a draft cannot be edited.
var errDraftGone = errors.New("the message of the draft is gone")

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
	switch running := a.drafts.Update(d, to); { //nolint:contextcheck // a draft outlives this call
	case running:
		a.typing.Show(to) //nolint:contextcheck // so does the indicator
	case d.Done:
		a.typing.Hide(to)
	}
}

// replace edits the message of a draft to the final text. A repeated edit changes
// nothing, so the text needs no mark of a repetition, and an unknown outcome is
// retried.
func (a *activation) replace(ctx context.Context, to target, message int, m sdk.Message) (sdk.Receipt, error) {
	source := cmp.Or(m.Unmarked, m.Text)
	text, entities := render(source)
	for {
		err := a.edit(ctx, to.chat, message, text, entities, m.Actions)
		if err == nil || isUnchanged(err) {
			return a.receipt(to, to.chat, message, m), nil
		}
		kind, after := classify(err)
		switch {
		case kind == malformed && entities != nil && !isAboutChat(err) && !isLost(err):
			a.log.Warn("Telegram refused the formatting; sending plain text", "error", a.api.redact(err))
			text, entities = source, nil
			continue
		case kind == malformed, kind == migrated:
			a.log.Info("cannot edit a draft; sending its final text as a new message", "error", a.api.redact(err))
			return sdk.Receipt{}, errDraftGone
		case kind == unknown:
			return sdk.Receipt{}, sdk.Retry(serverRetry, fmt.Errorf("no answer from Telegram: %s", a.api.redact(err)))
		case kind == limited:
			a.pace.block(to.chat, after)
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
func (d drafter) Remove(ctx context.Context, r draftRecord) error {
	where := target{chat: r.Chat, topic: r.Topic}
	_, err := d.paced(ctx, where, func() (sdk.Receipt, error) {
		return sdk.Receipt{}, d.remove(ctx, where, r.Message)
	})
	return err
}

func (a *activation) remove(ctx context.Context, where target, message int) error {
	call, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	_, err := a.api.bot.DeleteMessage(call, &bot.DeleteMessageParams{ChatID: where.chat, MessageID: message})
	if err == nil {
		return nil
	}
	switch kind, after := classify(err); kind {
	case malformed, refused, migrated: // it is gone, or too old
		if err := a.edit(ctx, where.chat, message, emptyText, nil, nil); err != nil {
			a.log.Debug("cannot remove a draft", "error", a.api.redact(err))
		}
		return nil
	case limited:
		a.pace.block(where.chat, after)
		return a.outcome(kind, after, err)
	case unknown:
		return sdk.Retry(serverRetry, fmt.Errorf("no answer from Telegram: %s", a.api.redact(err)))
	default:
		return a.outcome(kind, after, err)
	}
}
