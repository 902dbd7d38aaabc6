package telegramchannel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract"
)

// quoteOf returns the message that a message replies to; nil: none. The topic of a forum
// is formally a reply to the message that created it.
func quoteOf(msg *models.Message, me *models.User) *contract.Quote {
	part := ""
	if msg.Quote != nil {
		part = msg.Quote.Text
	}
	switch to := msg.ReplyToMessage; {
	case to != nil && to.ForumTopicCreated == nil:
		q := &contract.Quote{MessageID: strconv.Itoa(to.ID), Text: shorten(part)}
		if q.Text == "" {
			q.Text = shorten(textOf(to))
		}
		switch {
		case to.From != nil && to.From.ID == me.ID:
			q.MessageID = providerID(msg.Chat.ID, to.ID)
		case to.From != nil:
			q.Sender = nameOf(to.From)
		default:
			q.Sender = "unknown"
		}
		return q
	case msg.ExternalReply != nil && part != "": // a message of another chat
		from := originOf(&models.Message{ForwardOrigin: &msg.ExternalReply.Origin})
		return &contract.Quote{Sender: from, Text: shorten(part)}
	}
	return nil
}

// textOf is what people see of a message.
func textOf(m *models.Message) string {
	if a, _, ok := attachmentOf(m); ok {
		return strings.TrimSpace(a.Reference() + "\n" + m.Caption)
	}
	return m.Text
}

func shorten(text string) string { return contract.Truncate(text, contract.MaxQuote-len("…"), "…") }

// providerID is what the receipt of a message says.
func providerID(chat int64, message int) string { return fmt.Sprintf("%d/%d", chat, message) }

// parseReaction converts a new reaction to a message of this bot; nil: it is none. Known
// are the texts of messages: Telegram doesn't send them along.
func parseReaction(update int64, r *models.MessageReactionUpdated, me *models.User, known *recent) *pendingMessage {
	if r.User == nil || r.User.IsBot {
		return nil
	}
	before := emojis(r.OldReaction)
	added := slices.DeleteFunc(emojis(r.NewReaction), func(e string) bool { return slices.Contains(before, e) })
	id := providerID(r.Chat.ID, r.MessageID)
	sent, own := known.get(id)
	if len(added) == 0 || !own {
		return nil
	}
	p := &pendingMessage{Update: update, Dedupe: fmt.Sprintf("%d/%d", me.ID, update)}
	p.Message = contract.UserMessage{
		Text: strings.Join(added, " "), UserID: strconv.FormatInt(r.User.ID, 10), UserName: nameOf(r.User),
		Language: r.User.LanguageCode, ConversationID: strconv.FormatInt(r.Chat.ID, 10),
		Group: r.Chat.Type != models.ChatTypePrivate, GroupName: r.Chat.Title, SentAt: int64(r.Date),
		ThreadID: sent.thread, Quote: &contract.Quote{MessageID: id, Text: sent.text}, Reaction: true,
	}
	return p
}

func emojis(all []models.ReactionType) (found []string) {
	for _, r := range all {
		if r.ReactionTypeEmoji != nil {
			found = append(found, r.ReactionTypeEmoji.Emoji)
		}
	}
	return found
}

const (
	maxRecent     = 200 // messages
	maxRecentText = 300 // bytes of each
)

type recentText struct{ text, thread string }

// recent has the beginnings of the last messages that this process sent, which reactions
// may be on. It is safe for concurrent use.
type recent struct {
	mu    sync.Mutex
	texts map[string]recentText
	order []string
}

func (r *recent) add(id string, t recentText) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.texts == nil {
		r.texts = map[string]recentText{}
	}
	if _, known := r.texts[id]; !known {
		r.order = append(r.order, id)
	}
	t.text = contract.Truncate(t.text, maxRecentText, "…")
	r.texts[id] = t
	if len(r.order) > maxRecent {
		delete(r.texts, r.order[0])
		r.order = slices.Delete(r.order, 0, 1)
	}
}

func (r *recent) get(id string) (t recentText, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, known = r.texts[id]
	return t, known
}
