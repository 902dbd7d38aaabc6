package telegramchannel

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/markdown"
	"github.com/switchboard-run/switchboard/sdk/draft"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// maxDraft is the most text of a draft, in UTF-16 units: about the length of the first
// part of the final text.
const maxDraft = 3800

// draftRecord is the stored message of a draft.
type draftRecord struct {
	Chat    int64 `json:"chat"`
	Topic   int   `json:"topic,omitempty"`
	Message int   `json:"message"`
	At      int64 `json:"at"` // Unix seconds
}

// SentAt implements draft.Message.
func (r draftRecord) SentAt() time.Time { return time.Unix(r.At, 0) }

// drafter implements draft.Platform.
type drafter struct{ *activation }

// newDrafts returns the drafts of the bot with a token. They are stored by bot: another
// bot could not edit them.
func newDrafts(ctx context.Context, a *activation, token string) (*draft.Drafts[target, draftRecord], error) {
	bot, _, _ := strings.Cut(token, ":")
	return draft.New(ctx, drafter{a}, a.kernel, bot)
}

// Reserve implements draft.Platform.
func (d drafter) Reserve(to target) (leave func(), wait time.Duration) {
	return d.pace.tryEnter(to.chat)
}

// Post implements draft.Platform.
func (d drafter) Post(ctx context.Context, to target, replyTo, text string, plain bool) (draftRecord, error) {
	p := newMessage(to, parseMessageID(replyTo))
	p.Text, p.Entities = preview(text, plain)
	sent, err := d.api.bot.SendMessage(ctx, p)
	if err != nil {
		return draftRecord{}, err
	}
	d.typing.Postpone(to)
	return draftRecord{Chat: to.chat, Topic: to.topic, Message: sent.ID, At: time.Now().Unix()}, nil
}

// Edit implements draft.Platform.
func (d drafter) Edit(ctx context.Context, to target, r draftRecord, text string, plain bool) error {
	said, entities := preview(text, plain)
	err := d.edit(ctx, to.chat, r.Message, said, entities, nil)
	if err != nil && !isUnchanged(err) {
		return err
	}
	d.typing.Postpone(to)
	return nil
}

// Failed implements draft.Platform.
func (d drafter) Failed(to target, posted bool, err error) draft.Failure {
	d.log.Debug("draft not shown", "chat", to.chat, "error", d.api.redact(err))
	switch kind, after := classify(err); {
	case kind == malformed && !isAboutChat(err) && !isLost(err):
		return draft.Plain
	case kind == limited:
		d.pace.block(to.chat, after)
		return draft.Wait
	case kind == serverError, kind == unreachable, kind == unknown && posted:
		return draft.Repeat
	}
	// It was refused, or the outcome of the first message is unknown: there must not be
	// a second one.
	return draft.Mute
}

// preview formats an unfinished text.
func preview(text string, plain bool) (string, []models.MessageEntity) {
	text = truncate(text, maxDraft)
	if plain {
		return text + draft.Mark, nil
	}
	said, entities := render(text)
	if markdown.Len(said)+markdown.Len(draft.Mark) > maxText {
		said, entities = text, nil
	}
	return said + draft.Mark, entities
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
	ctx context.Context, chat int64, message int, text string, entities []models.MessageEntity, actions []contract.Action,
) error {
	ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	_, err := a.api.bot.EditMessageText(ctx, &bot.EditMessageTextParams{
		ChatID: chat, MessageID: message, Text: text, Entities: entities, ReplyMarkup: keyboard(actions),
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
