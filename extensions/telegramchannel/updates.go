package telegramchannel

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract"
)

// parseUpdate converts an update to a message; nil: it is not for the assistant.
func parseUpdate(u *models.Update, me *models.User, known *recent) *pendingMessage {
	switch {
	case u.CallbackQuery != nil:
		return parsePress(u.ID, u.CallbackQuery, me)
	case u.MessageReaction != nil:
		return parseReaction(u.ID, u.MessageReaction, me, known)
	}
	msg, edited := u.Message, false
	if msg == nil {
		msg, edited = u.EditedMessage, true
	}
	if msg == nil || msg.From == nil || msg.From.IsBot {
		return nil
	}
	text, entities := msg.Text, msg.Entities
	attached, file, isAttached := attachmentOf(msg)
	if isAttached {
		text, entities = msg.Caption, msg.CaptionEntities
	}
	if text == "" && (!isAttached || edited) {
		return nil // a service message, or a live location
	}
	group := msg.Chat.Type != models.ChatTypePrivate
	switch msg.Chat.Type {
	case models.ChatTypePrivate, models.ChatTypeGroup, models.ChatTypeSupergroup:
	default:
		return nil
	}
	heard := parseAddress(text, entities, me)
	p := &pendingMessage{Update: u.ID, Dedupe: fmt.Sprintf("%d/%d", me.ID, u.ID)}
	if isAttached && !edited {
		p.Album = msg.MediaGroupID
	}
	p.unaddressed = group && !heard.named && !repliesTo(msg, me)
	if p.unaddressed && p.Album == "" || heard.forAnother {
		return nil
	}
	m := &p.Message
	*m = contract.UserMessage{
		Text:           truncateInput(heard.text),
		UserID:         strconv.FormatInt(msg.From.ID, 10),
		UserName:       nameOf(msg.From),
		Language:       msg.From.LanguageCode,
		ConversationID: strconv.FormatInt(msg.Chat.ID, 10),
		Group:          group,
		GroupName:      msg.Chat.Title, // empty in a private chat
		MessageID:      strconv.Itoa(msg.ID),
		Edited:         edited,
		SentAt:         int64(msg.Date),
	}
	m.ForwardedFrom, m.Quote = originOf(msg), quoteOf(msg, me)
	if edited {
		m.SentAt = int64(cmp.Or(msg.EditDate, msg.Date))
	}
	// Outside of forums a thread is only a chain of replies.
	if msg.IsTopicMessage && msg.MessageThreadID != 0 {
		m.ThreadID = strconv.Itoa(msg.MessageThreadID)
	}
	if isAttached {
		m.Attachments, p.File = []contract.Attachment{attached}, file
	}
	return p
}

// maxInput is far above Telegram's limit of a message, and far below the limit of an
// event.
const maxInput = 64 << 10

// truncateInput shortens a text to fit into an event, with a note.
func truncateInput(text string) string {
	if len(text) <= maxInput {
		return text
	}
	return strings.ToValidUTF8(text[:maxInput], "") + fmt.Sprintf("\n[truncated: the message has %d bytes]", len(text))
}

func nameOf(u *models.User) string {
	return cmp.Or(strings.TrimSpace(u.FirstName+" "+u.LastName), u.Username, strconv.FormatInt(u.ID, 10))
}

// originOf names the author of a message that the sender only passed on; empty: the
// sender wrote it.
func originOf(m *models.Message) string {
	switch o := m.ForwardOrigin; {
	case o == nil && m.ViaBot != nil:
		return nameOf(m.ViaBot)
	case o == nil:
		return ""
	case o.MessageOriginUser != nil:
		return nameOf(&o.MessageOriginUser.SenderUser)
	case o.MessageOriginHiddenUser != nil:
		return cmp.Or(o.MessageOriginHiddenUser.SenderUserName, "unknown")
	case o.MessageOriginChat != nil:
		return cmp.Or(o.MessageOriginChat.SenderChat.Title, "unknown")
	case o.MessageOriginChannel != nil:
		return cmp.Or(o.MessageOriginChannel.Chat.Title, "unknown")
	}
	return "unknown"
}

// repliesTo reports whether a message replies to the bot. In a topic that the bot
// created, every message formally replies to the message that created the topic.
func repliesTo(msg *models.Message, me *models.User) bool {
	to := msg.ReplyToMessage
	return to != nil && to.From != nil && to.From.ID == me.ID && to.ForumTopicCreated == nil
}
