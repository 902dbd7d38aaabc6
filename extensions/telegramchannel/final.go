package telegramchannel

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-telegram/bot"

	"github.com/switchboard-run/switchboard/sdk"
)

// nothingToSay is what becomes of a draft that is too old to be deleted.
const nothingToSay = "…"

// errLost says that a final text cannot take the place of its draft.
var errLost = errors.New("the message of the draft is not there any more")

// Draft implements sdk.Drafter.
func (c *channel) Draft(_ context.Context, d sdk.Draft) {
	a, err := c.usable()
	if err != nil {
		return
	}
	to, err := address(d.Conversation, d.Thread)
	if err != nil {
		return
	}
	switch running := a.drafts.update(d, to); { //nolint:contextcheck // a draft outlives this call
	case running:
		a.typing.show(to) //nolint:contextcheck // so does the indicator
	case d.Done:
		a.typing.hide(to)
	}
}

// replace makes the message of a draft say the final text. Doing so again
// changes nothing, so the text bears no mark of a repetition, and whether it was
// done need not be known.
func (a *activation) replace(ctx context.Context, to place, message int, m sdk.Message) (sdk.Receipt, error) {
	source := cmp.Or(m.Unmarked, m.Text)
	text, entities := render(source)
	for {
		err := a.edit(ctx, to.chat, message, text, entities)
		if err == nil || unchanged(err) {
			return a.receipt(to, to.chat, message, m.DraftID), nil
		}
		kind, after := classify(err)
		switch {
		case kind == malformed && entities != nil && !aboutChat(err) && !lost(err):
			a.log.Warn("Telegram refuses a formatted message, sending it as it is", "error", a.api.redact(err))
			text, entities = source, nil
			continue
		case kind == malformed, kind == migrated:
			a.log.Info("a draft cannot be edited, its final text is sent anew", "error", a.api.redact(err))
			return sdk.Receipt{}, errLost
		case kind == unknown:
			return sdk.Receipt{}, sdk.Retry(serverPause, fmt.Errorf("no answer from Telegram: %s", a.api.redact(err)))
		case kind == limited:
			a.pace.close(to.chat, after)
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
	if to, err := address(d.Conversation, d.Thread); err == nil {
		a.typing.hide(to)
	}
	where, message, err := a.drafts.finish(ctx, d.ID)
	if err != nil {
		return err
	}
	if message != 0 {
		if _, err := a.paced(ctx, where, func() (sdk.Receipt, error) { return sdk.Receipt{}, a.remove(ctx, where, message) }); err != nil {
			return err
		}
	}
	if effects := a.drafts.settled(d.ID); len(effects) > 0 {
		if _, err := a.kernel.Commit(ctx, effects...); err != nil {
			return fmt.Errorf("forget the draft %s: %w", d.ID, err)
		}
	}
	return nil
}

// remove deletes a message, which may be gone already.
func (a *activation) remove(ctx context.Context, where place, message int) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := a.api.bot.DeleteMessage(call, &bot.DeleteMessageParams{ChatID: where.chat, MessageID: message})
	if err == nil {
		return nil
	}
	switch kind, after := classify(err); kind {
	case malformed, refused, migrated: // it is gone, or too old
		if err := a.edit(ctx, where.chat, message, nothingToSay, nil); err != nil {
			a.log.Debug("a draft cannot be removed", "error", a.api.redact(err))
		}
		return nil
	case limited:
		a.pace.close(where.chat, after)
		return a.outcome(kind, after, err)
	case unknown:
		return sdk.Retry(serverPause, fmt.Errorf("no answer from Telegram: %s", a.api.redact(err)))
	default:
		return a.outcome(kind, after, err)
	}
}
