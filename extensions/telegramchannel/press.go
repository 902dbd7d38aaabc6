package telegramchannel

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/markdown"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

// press is a pressed button: a callback query and the message with the button. It is
// stored with its command until the query is answered and, if the person may use the
// buttons, until these are gone.
type press struct {
	Query   string `json:"query"`
	Chat    int64  `json:"chat"`
	Message int    `json:"message"`
}

// pressPrefix begins the keys of the stored presses of a bot.
func pressPrefix(bot int64) string { return fmt.Sprintf("pressed/%d/", bot) }

func (p *press) key(bot int64) string {
	return fmt.Sprintf("%s%d/%d", pressPrefix(bot), p.Chat, p.Message)
}

// parsePress converts a callback query to the message that types the button's command;
// nil: the button is not of this program.
func parsePress(update int64, q *models.CallbackQuery, me *models.User) *pendingMessage {
	chat, id, thread := models.Chat{}, 0, 0
	switch m := q.Message; {
	case m.Message != nil:
		chat, id = m.Message.Chat, m.Message.ID
		if m.Message.IsTopicMessage {
			thread = m.Message.MessageThreadID
		}
	case m.InaccessibleMessage != nil:
		chat, id = m.InaccessibleMessage.Chat, m.InaccessibleMessage.MessageID
	}
	if id == 0 || !strings.HasPrefix(q.Data, "/") || q.From.IsBot {
		return nil
	}
	p := &pendingMessage{Update: update, Dedupe: fmt.Sprintf("%d/%d", me.ID, update), Press: &press{q.ID, chat.ID, id}}
	p.Message = contract.UserMessage{
		Text: q.Data, UserID: strconv.FormatInt(q.From.ID, 10), UserName: nameOf(&q.From), Language: q.From.LanguageCode,
		ConversationID: strconv.FormatInt(chat.ID, 10), Group: chat.Type != models.ChatTypePrivate, GroupName: chat.Title,
		MessageID: strconv.Itoa(id),
	}
	if thread != 0 {
		p.Message.ThreadID = strconv.Itoa(thread)
	}
	return p
}

// presses are the presses of a bot that are stored and not answered yet.
type presses struct {
	*activation
	bot     int64
	running sync.WaitGroup
}

// publish returns the effects that publish messages, in order, and after them those that
// store their presses.
func (p *presses) publish(messages []*pendingMessage) (effects sdk.Effects) {
	for _, m := range messages {
		effects = append(effects, m.effect())
	}
	for _, m := range messages {
		if m.Press != nil {
			effects = append(effects, sdk.Put(m.Press.key(p.bot), m.Press))
		}
	}
	return effects
}

// published answers the presses among messages whose effects were committed. A message of a
// person who is not admitted has become no event: then the buttons stay for the others.
func (p *presses) published(ctx context.Context, messages []*pendingMessage, results []*busv1.EffectResult) {
	for i, m := range messages {
		switch {
		case m.Press == nil:
		case results[i].GetEventId() == "":
			said := words.Say(m.Message.Language, "You can't use these buttons, because I don't know you yet.")
			p.running.Go(func() {
				p.answer(ctx, m.Press, said)
				p.forget(ctx, m.Press)
			})
		default:
			p.running.Go(func() { p.pressed(ctx, m.Press) })
		}
	}
}

// pressed answers a press, and takes the buttons off the message.
func (p *presses) pressed(ctx context.Context, b *press) {
	p.answer(ctx, b, "")
	for n := 1; ; n++ {
		again, err := p.removeButtons(ctx, b)
		if err == nil {
			p.forget(ctx, b)
			return
		}
		if !pause.For(ctx, max(again, pause.Backoff(n))) {
			return
		}
	}
}

// answer ends the waiting of the button that was pressed, and shows the person a text;
// empty: none.
func (p *presses) answer(ctx context.Context, b *press, text string) {
	ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	_, err := p.api.bot.AnswerCallbackQuery(ctx, &bot.AnswerCallbackQueryParams{CallbackQueryID: b.Query, Text: text})
	if err != nil {
		p.log.Debug("answer a pressed button", "error", p.api.redact(err))
	}
}

func (p *presses) forget(ctx context.Context, b *press) {
	if _, err := p.kernel.Commit(ctx, sdk.Delete(b.key(p.bot))); err != nil && ctx.Err() == nil {
		p.log.Warn("forget a pressed button", "error", err)
	}
}

// removeButtons takes the buttons off a message, if it still exists. An error is worth
// another try, after a while.
func (a *activation) removeButtons(ctx context.Context, b *press) (after time.Duration, err error) {
	leave, err := a.pace.enter(ctx, b.Chat)
	if err != nil {
		return 0, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	_, err = a.api.bot.EditMessageReplyMarkup(ctx, &bot.EditMessageReplyMarkupParams{
		ChatID: b.Chat, MessageID: b.Message, ReplyMarkup: models.InlineKeyboardMarkup{
			InlineKeyboard: [][]models.InlineKeyboardButton{},
		},
	})
	if err == nil || isUnchanged(err) {
		return 0, nil
	}
	kind, after := classify(err)
	switch kind {
	case malformed, refused, migrated: // the message is gone, or the chat
		a.log.Debug("remove the buttons of a message", "error", a.api.redact(err))
		return 0, nil
	case limited:
		a.pace.block(b.Chat, after)
	}
	return after, err
}

// load goes on with the presses that an earlier process had stored.
func (p *presses) load(ctx context.Context) error {
	var found []*press
	err := p.kernel.Scan(ctx, pressPrefix(p.bot), func(v sdk.Value) error {
		b := &press{}
		if err := v.Decode(b); err != nil {
			p.log.Error("decode a pressed button; skipping it", "key", v.Key, "error", err)
			return nil
		}
		found = append(found, b)
		return nil
	})
	for _, b := range found {
		p.running.Go(func() { p.pressed(ctx, b) })
	}
	return err
}

const (
	// rowWidth is how many characters stand in a row of buttons on a phone. All buttons of
	// a row have the same width.
	rowWidth = 28
	maxLabel = 60 // characters; Telegram's clients cut longer ones
)

// keyboard returns the buttons of a message; nil: it has none.
func keyboard(actions []contract.Action) models.ReplyMarkup {
	if len(actions) == 0 {
		return nil
	}
	var rows [][]models.InlineKeyboardButton
	longest := 0 // label of the row
	for _, a := range actions {
		label := a.Label
		if markdown.Len(label) > maxLabel {
			label = truncate(label, maxLabel-1) + "…"
		}
		last, n := len(rows)-1, markdown.Len(label)
		if longest = max(longest, n); last < 0 || longest*(len(rows[last])+1) > rowWidth {
			rows, longest = append(rows, nil), n
			last++
		}
		rows[last] = append(rows[last], models.InlineKeyboardButton{Text: label, CallbackData: a.Command})
	}
	return models.InlineKeyboardMarkup{InlineKeyboard: rows}
}
