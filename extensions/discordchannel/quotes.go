package discordchannel

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk/draft"
)

// quote sets what a message replies to.
func (s *session) quote(said *contract.UserMessage, m message) {
	if forwarded(m) || m.Reference == nil || m.Reference.MessageID == "" || m.Type != messageReply {
		return
	}
	said.Quote = &contract.Quote{MessageID: m.Reference.MessageID}
	if m.RepliedTo != nil {
		said.Quote = s.quoteOf(*m.RepliedTo, m.ChannelID)
	}
}

// quoteOf returns a message as a quote. One of the bot has the id that its receipt had.
func (s *session) quoteOf(m message, channel string) *contract.Quote {
	q := &contract.Quote{MessageID: m.ID, Text: cut(plainNames(m.Content, m.Mentions), contract.MaxQuote)}
	switch {
	case m.Author == nil:
		q.Sender = "unknown"
	case m.Author.ID == s.bot.ID:
		q.MessageID = providerID(target(channel), m.ID)
		q.Text = strings.TrimSuffix(q.Text, draft.Mark)
	default:
		q.Sender = s.nameOf(m.Author, m.Member)
	}
	return q
}

// lookupTimeout bounds a request for what a message can do without: the events after it
// wait.
const lookupTimeout = 2 * time.Second

// react sets the message that a reaction was put on, with its text if it can be had.
func (s *session) react(ctx context.Context, said *contract.UserMessage, r reaction) {
	said.Reaction = true
	said.Quote = &contract.Quote{MessageID: providerID(target(r.ChannelID), r.MessageID)}
	var m message
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	path := messagesOf(target(r.ChannelID)) + "/" + r.MessageID
	err := s.api.do(ctx, request{method: http.MethodGet, path: path}, &m)
	if err != nil {
		s.log.Debug("read the message of a reaction", "error", s.api.redact(err))
		return
	}
	m.ID = r.MessageID
	said.Quote = s.quoteOf(m, r.ChannelID)
}

// cut shortens a text to n bytes, between characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}
