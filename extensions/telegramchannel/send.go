package telegramchannel

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract/markdown"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/markup"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// maxText is the length of a message in UTF-16 units.
const maxText = 4096

const (
	// serverRetry is the pause after a problem of Telegram, tokenRetry after a bad
	// token.
	serverRetry = 2 * time.Second
	tokenRetry  = 30 * time.Second
)

var noOwner = words.Sprintf("no one is approved on Telegram yet, so there is no default recipient: write to the bot, " +
	"then approve the code in its answer with `switchboard pairing approve`")

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
	shown, err := a.drafts.Finish(ctx, m.DraftID)
	if err != nil {
		return sdk.Receipt{}, err
	}
	files, named := split(m.Attachments)
	m.Attachments = named
	_, m = m.SplitFiles()
	hasDraft := shown.Message != 0 && shown.Chat == to.chat
	text := func() (sdk.Receipt, error) {
		if hasDraft {
			if r, err := a.replace(ctx, to, shown.Message, m); !errors.Is(err, errDraftGone) {
				return r, err
			}
			// Another node that took over may have deleted it, and sends the text itself.
			if _, err := a.kernel.Commit(ctx, a.drafts.Delivered(m.DraftID)...); err != nil {
				return sdk.Receipt{}, sdk.Retry(serverRetry, err)
			}
		}
		return a.send(ctx, to, m)
	}
	if len(files) > 0 {
		return a.sendFiles(ctx, to, m, files, hasDraft, text)
	}
	return a.paced(ctx, to, text)
}

// usable returns the activation if it can send messages.
func (c *channel) usable() (*activation, error) {
	a := c.active.Load()
	switch {
	case a == nil:
		return nil, sdk.Retry(time.Second, errors.New("the channel is starting"))
	case a.api == nil:
		return nil, sdk.Retry(tokenRetry, errors.New(noToken))
	}
	return a, nil
}

// paced makes a request when the pacer allows it.
func (a *activation) paced(ctx context.Context, to target, request func() (sdk.Receipt, error)) (sdk.Receipt, error) {
	leave, err := a.pace.enter(ctx, to.chat)
	if err != nil {
		return sdk.Receipt{}, err
	}
	defer leave()
	a.typing.Hide(to)
	return request()
}

// recipient returns the target of a message; without a conversation, the owner's
// private chat.
func recipient(m sdk.Message) (target, error) {
	if m.Conversation != "" {
		return parseTarget(m.Conversation, m.Thread)
	}
	if m.Owner == "" {
		return target{}, errors.New(noOwner)
	}
	return parseTarget(m.Owner, "") // a private chat has the id of its user
}

func (a *activation) send(ctx context.Context, to target, m sdk.Message) (sdk.Receipt, error) {
	answers := 0
	if m.Part <= 1 {
		answers = parseMessageID(m.ReplyTo)
	}
	p := newMessage(to, answers)
	p.Text, p.Entities = render(m.Text)
	p.ReplyMarkup = keyboard(m.Actions)
	for {
		sent, err := a.sendMessage(ctx, p)
		if err == nil {
			return a.receipt(to, sent.Chat.ID, sent.ID, m), nil
		}
		kind, after := classify(err)
		switch {
		case kind == malformed && p.Entities != nil && !isAboutChat(err):
			a.log.Warn("Telegram refused the formatting; sending plain text", "error", a.api.redact(err))
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
			a.pace.block(to.chat, after)
		}
		return sdk.Receipt{}, a.outcome(kind, after, err)
	}
}

// newMessage returns a message without text. In a group it quotes the message that it
// answers.
func newMessage(to target, answers int) *bot.SendMessageParams {
	p := &bot.SendMessageParams{ChatID: to.chat, MessageThreadID: to.topic}
	if answers != 0 && to.group() {
		p.ReplyParameters = &models.ReplyParameters{MessageID: answers, AllowSendingWithoutReply: true}
	}
	return p
}

// receipt returns the receipt of a delivered text.
func (a *activation) receipt(to target, chat int64, message int, m sdk.Message) sdk.Receipt {
	id := providerID(chat, message)
	a.recent.add(id, recentText{cmp.Or(m.Unmarked, m.Text), to.thread()})
	return sdk.Receipt{
		ProviderID: id, Conversation: to.conversation(), Thread: to.thread(),
		Effects: a.drafts.Delivered(m.DraftID),
	}
}

func (a *activation) sendMessage(ctx context.Context, p *bot.SendMessageParams) (*models.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	return a.api.bot.SendMessage(ctx, p)
}

// outcome returns the error of a failed send for the kernel.
func (a *activation) outcome(kind failureKind, after time.Duration, err error) error {
	text := a.api.redact(err)
	switch kind {
	case limited:
		return sdk.Retry(after, words.Errorf("this chat is limited by Telegram: waiting %v", words.Span(after)))
	case serverError:
		return sdk.Retry(serverRetry, words.Errorf("problem at Telegram: %s", text))
	case unreachable:
		return sdk.Retry(serverRetry, words.Errorf("no connection to Telegram: %s", text))
	case badTokenKind:
		return sdk.Retry(tokenRetry, words.Errorf("bot token refused: %v", badToken))
	case unknown, conflicting:
		return sdk.Unknown(words.Errorf("unknown whether Telegram accepted the message: %s", text))
	default:
		return sdk.Drop(refusal(text))
	}
}

// refusal explains why a message cannot be delivered, and suggests what to do.
func refusal(text string) string {
	switch {
	case strings.Contains(text, "chat not found"):
		return words.Sprintf("Telegram refused the message: chat not found (the person must write to the bot first)")
	case strings.Contains(text, "blocked by the user"):
		return words.Sprintf("Telegram refused the message: bot was blocked by the user (the person must unblock the bot)")
	case strings.Contains(text, "kicked"):
		return words.Sprintf("Telegram refused the message: bot was kicked from the group (add the bot to the group again)")
	}
	return words.Sprintf("Telegram refused the message: %s", text)
}

// isAboutChat reports whether a refusal is about the chat, so that any text would be
// refused.
func isAboutChat(err error) bool {
	return containsAny(err.Error(), "chat not found", "thread not found", "not enough rights", "have no rights",
		"TOPIC_", "CHAT_", "USER_", "PEER_")
}

// render formats a text; a text that cannot be formatted, or becomes too long, stays
// plain.
func render(source string) (text string, entities []models.MessageEntity) {
	defer func() {
		if recover() != nil {
			text, entities = source, nil
		}
	}()
	text, entities = markup.Render(source)
	if text == "" || markdown.Len(text) > maxText {
		return source, nil
	}
	return text, entities
}

// typingEvery is how often the action is renewed, which Telegram shows for 5 seconds.
const typingEvery = 4500 * time.Millisecond

// sendTyping shows in a chat that the bot is typing.
func (a *activation) sendTyping(ctx context.Context, p target) error {
	_, err := a.api.bot.SendChatAction(ctx, &bot.SendChatActionParams{
		ChatID: p.chat, MessageThreadID: p.topic, Action: models.ChatActionTyping,
	})
	return err
}
