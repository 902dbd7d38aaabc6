package telegramchannel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/extensions/telegramchannel/markup"
	"github.com/switchboard-run/switchboard/sdk"
)

// maxText is the length of a message in UTF-16 units.
const maxText = 4096

const (
	// serverPause is when to send again after Telegram had trouble of its own,
	// tokenPause after it did not know the token.
	serverPause = 2 * time.Second
	tokenPause  = 30 * time.Second
)

const nobody = "nobody is approved on Telegram yet, so there is no default recipient: write to the bot, " +
	"then approve the code it answers with `switchboard pairing approve`"

// Send implements sdk.Channel.
func (c *channel) Send(ctx context.Context, m sdk.Message) (sdk.Receipt, error) {
	a, err := c.usable()
	if err != nil {
		return sdk.Receipt{}, err
	}
	to, err := recipient(m)
	if err != nil {
		return sdk.Receipt{}, sdk.Drop(err.Error())
	}
	where, message, err := a.drafts.finish(ctx, m.DraftID)
	if err != nil {
		return sdk.Receipt{}, err
	}
	if message != 0 && where.chat == to.chat {
		r, err := a.paced(ctx, to, func() (sdk.Receipt, error) { return a.replace(ctx, to, message, m) })
		if !errors.Is(err, errLost) {
			return r, err
		}
	}
	return a.paced(ctx, to, func() (sdk.Receipt, error) { return a.send(ctx, to, m) })
}

// usable is the activation, if messages can go out.
func (c *channel) usable() (*activation, error) {
	a := c.active.Load()
	switch {
	case a == nil:
		return nil, sdk.Retry(time.Second, errors.New("the channel is starting"))
	case a.api == nil:
		return nil, sdk.Retry(tokenPause, errors.New(noToken))
	}
	return a, nil
}

// paced makes a request when it may be made.
func (a *activation) paced(ctx context.Context, to place, request func() (sdk.Receipt, error)) (sdk.Receipt, error) {
	leave, err := a.pace.enter(ctx, to.chat)
	if err != nil {
		return sdk.Receipt{}, err
	}
	defer leave()
	a.typing.hide(to)
	return request()
}

// recipient is where a message goes; without a conversation, to the owner's private chat.
func recipient(m sdk.Message) (place, error) {
	if m.Conversation != "" {
		return address(m.Conversation, m.Thread)
	}
	if m.Owner == "" {
		return place{}, errors.New(nobody)
	}
	return address(m.Owner, "") // a private chat has the id of its user
}

func (a *activation) send(ctx context.Context, to place, m sdk.Message) (sdk.Receipt, error) {
	answers := 0
	if m.Part <= 1 {
		answers = messageID(m.ReplyTo)
	}
	p := newMessage(to, answers)
	p.Text, p.Entities = render(m.Text)
	for {
		sent, err := a.call(ctx, p)
		if err == nil {
			return a.receipt(to, sent.Chat.ID, sent.ID, m.DraftID), nil
		}
		kind, after := classify(err)
		switch {
		case kind == malformed && p.Entities != nil && !aboutChat(err):
			a.log.Warn("Telegram refuses a formatted message, sending it as it is", "error", a.api.redact(err))
			p.Text, p.Entities = m.Text, nil
			continue
		case kind == migrated:
			var moved *bot.MigrateError
			if errors.As(err, &moved) && int64(moved.MigrateToChatID) != to.chat {
				to.chat = int64(moved.MigrateToChatID)
				p.ChatID = to.chat
				continue
			}
		case kind == limited:
			a.pace.close(to.chat, after)
		}
		return sdk.Receipt{}, a.outcome(kind, after, err)
	}
}

// newMessage is a message without its text. In a group it quotes what it answers.
func newMessage(to place, answers int) *bot.SendMessageParams {
	p := &bot.SendMessageParams{ChatID: to.chat, MessageThreadID: to.topic}
	if answers != 0 && to.group() {
		p.ReplyParameters = &models.ReplyParameters{MessageID: answers, AllowSendingWithoutReply: true}
	}
	return p
}

// receipt is that of a text which has got where it belongs.
func (a *activation) receipt(to place, chat int64, message int, draft string) sdk.Receipt {
	return sdk.Receipt{
		ProviderID:   fmt.Sprintf("%d/%d", chat, message),
		Conversation: to.conversation(), Thread: to.thread(),
		Effects: a.drafts.settled(draft),
	}
}

func (a *activation) call(ctx context.Context, p *bot.SendMessageParams) (*models.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return a.api.bot.SendMessage(ctx, p)
}

// outcome is what the kernel is told of a failed send.
func (a *activation) outcome(kind failure, after time.Duration, err error) error {
	text := a.api.redact(err)
	switch kind {
	case limited:
		return sdk.Retry(after, fmt.Errorf("held for %s, as Telegram asks", after))
	case serverError:
		return sdk.Retry(serverPause, fmt.Errorf("trouble at Telegram: %s", text))
	case unreachable:
		return sdk.Retry(serverPause, fmt.Errorf("no connection to Telegram: %s", text))
	case tokenWrong:
		return sdk.Retry(tokenPause, errors.New(badToken))
	case unknown, conflicting:
		return sdk.Unknown(fmt.Errorf("it is unknown whether Telegram has taken the message: %s", text))
	default:
		return sdk.Drop("Telegram refuses the message: " + text + hint(text))
	}
}

// hint is what a person can do about a refusal.
func hint(text string) string {
	switch {
	case strings.Contains(text, "chat not found"):
		return " (the person has to write to the bot first)"
	case strings.Contains(text, "blocked by the user"):
		return " (the person has to unblock the bot)"
	case strings.Contains(text, "kicked"):
		return " (the bot has to be added to the group again)"
	}
	return ""
}

// aboutChat reports whether a refusal is about the chat rather than the text:
// another text would be refused as well.
func aboutChat(err error) bool {
	text := err.Error()
	for _, s := range []string{"chat not found", "thread not found", "not enough rights", "have no rights", "TOPIC_", "CHAT_", "USER_", "PEER_"} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// render formats a text; one that cannot be formatted, or becomes too long by
// it, stays as it is.
func render(source string) (text string, entities []models.MessageEntity) {
	defer func() {
		if recover() != nil {
			text, entities = source, nil
		}
	}()
	text, entities = markup.Render(source)
	if text == "" || markup.Len(text) > maxText {
		return source, nil
	}
	return text, entities
}

// act shows in a chat that the bot is typing.
func (a *activation) act(ctx context.Context, p place) error {
	_, err := a.api.bot.SendChatAction(ctx, &bot.SendChatActionParams{
		ChatID: p.chat, MessageThreadID: p.topic, Action: models.ChatActionTyping,
	})
	return err
}
