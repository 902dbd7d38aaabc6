package telegramchannel

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract"
)

// parseUpdate converts an update to a message with its dedupe key; ok is false if it
// is not for the assistant.
func parseUpdate(u *models.Update, me *models.User) (m contract.UserMessage, dedupe string, ok bool) {
	msg, edited := u.Message, false
	if msg == nil {
		msg, edited = u.EditedMessage, true
	}
	if msg == nil || msg.From == nil || msg.From.IsBot {
		return m, "", false
	}
	text, entities := msg.Text, msg.Entities
	attachment, attached := attachmentOf(msg)
	if attached {
		text, entities = msg.Caption, msg.CaptionEntities
	}
	if text == "" && (!attached || edited) {
		return m, "", false // a service message, or a live location
	}
	group := msg.Chat.Type != models.ChatTypePrivate
	switch msg.Chat.Type {
	case models.ChatTypePrivate, models.ChatTypeGroup, models.ChatTypeSupergroup:
	default:
		return m, "", false
	}
	heard := parseAddress(text, entities, me)
	if group && !heard.named && !repliesTo(msg, me) || heard.forAnother {
		return m, "", false
	}
	m = contract.UserMessage{
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
	m.ForwardedFrom = originOf(msg)
	if edited {
		m.SentAt = int64(cmp.Or(msg.EditDate, msg.Date))
	}
	// Outside of forums a thread is only a chain of replies.
	if msg.IsTopicMessage && msg.MessageThreadID != 0 {
		m.ThreadID = strconv.Itoa(msg.MessageThreadID)
	}
	dedupe = fmt.Sprintf("%d/%d", me.ID, u.ID)
	if attached {
		m.Attachments = []contract.Attachment{attachment}
		if text == "" && msg.MediaGroupID != "" {
			// The parts of an album are separate messages: publish only one.
			dedupe = fmt.Sprintf("%d/album/%d/%s", me.ID, msg.Chat.ID, msg.MediaGroupID)
		}
	}
	return m, dedupe, true
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

// attachmentOf returns the attachment of a message.
func attachmentOf(m *models.Message) (contract.Attachment, bool) {
	kind, name := "", ""
	switch {
	case len(m.Photo) > 0:
		kind = "photo"
	case m.Voice != nil:
		kind = "voice message"
	case m.VideoNote != nil:
		kind = "video message"
	case m.Animation != nil: // also has a document
		kind = "animation"
	case m.Document != nil:
		kind, name = "document", m.Document.FileName
	case m.Audio != nil:
		kind, name = "audio file", m.Audio.FileName
	case m.Video != nil:
		kind, name = "video", m.Video.FileName
	case m.Sticker != nil:
		kind, name = "sticker", m.Sticker.Emoji
	case m.Location != nil || m.Venue != nil:
		kind = "location"
	case m.Contact != nil:
		kind = "contact"
	case m.Poll != nil:
		kind = "poll"
	case m.Story != nil:
		kind = "story"
	case m.Dice != nil:
		kind = "dice"
	case m.Game != nil:
		kind = "game"
	case m.Checklist != nil:
		kind = "checklist"
	case m.PaidMedia != nil:
		kind = "paid media"
	default:
		return contract.Attachment{}, false
	}
	return contract.Attachment{Kind: kind, Name: name}, true
}
