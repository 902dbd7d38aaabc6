package discordchannel

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// parse converts an event to a message; nil: it is not for the assistant. An event that
// can't be decoded is logged and skipped. It fails only when the connection should end.
func (s *session) parse(ctx context.Context, e event) (*pendingMessage, error) {
	var m *pendingMessage
	var err error
	switch e.kind {
	case "MESSAGE_CREATE", "MESSAGE_UPDATE":
		var said message
		if said, err = decodeMessage(e.data); err == nil {
			return s.parseMessage(ctx, said, e.kind == "MESSAGE_UPDATE")
		}
	case "INTERACTION_CREATE":
		var i interaction
		if err = json.Unmarshal(e.data, &i); err == nil {
			return s.parseInteraction(ctx, i)
		}
	case "MESSAGE_REACTION_ADD":
		var r reaction
		if err = json.Unmarshal(e.data, &r); err == nil {
			return s.parseReaction(ctx, r, e.seq)
		}
	case "CHANNEL_UPDATE", "THREAD_UPDATE":
		var c guildChannel
		if err = json.Unmarshal(e.data, &c); err == nil {
			s.places.changed(c.ID)
		}
	}
	if err != nil {
		s.log.Error("decode an event; skipping it", "event", e.kind, "sequence", e.seq, "error", err)
	}
	return m, nil
}

// maxNames bounds the names of people that are remembered.
const maxNames = 1000

// nameOf returns a person's name, and remembers it.
func (s *session) nameOf(u *user, in *member) string {
	name := cmp.Or(u.GlobalName, u.Username, u.ID)
	if in != nil && in.Nick != "" {
		name = in.Nick
	}
	if len(s.names) >= maxNames {
		clear(s.names)
	}
	s.names[u.ID] = name
	return name
}

// parseMessage converts a message; nil: it is not for the assistant.
func (s *session) parseMessage(ctx context.Context, m message, update bool) (*pendingMessage, error) {
	if m.Author == nil || m.Author.Bot || m.WebhookID != "" || m.Type != messageDefault && m.Type != messageReply {
		return nil, nil //nolint:nilnil // there is none
	}
	if update && m.EditedAt == nil {
		return nil, nil //nolint:nilnil // a preview of a link was added
	}
	heard := s.parseAddress(m)
	if m.GuildID != "" && !heard.named && !s.repliesTo(m) {
		return nil, nil //nolint:nilnil // people among themselves
	}
	p := &pendingMessage{Dedupe: "m/" + m.ID}
	said := &p.Message
	*said = contract.UserMessage{
		Text: truncateInput(heard.text), UserID: m.Author.ID, UserName: s.nameOf(m.Author, m.Member),
		MessageID: m.ID, SentAt: m.Timestamp.Unix(), Edited: update, Language: s.languages[m.Author.ID],
	}
	if update {
		p.Dedupe = "e/" + m.ID + "/" + strconv.FormatInt(m.EditedAt.UnixMilli(), 10)
		said.SentAt = m.EditedAt.Unix()
	}
	content := m
	if forwarded(m) {
		said.ForwardedFrom = "unknown"
		content = m.Snapshots[0].Message
		said.Text = truncateInput(plainNames(content.Content, content.Mentions))
	}
	if !update {
		said.Attachments, p.Files = s.attachmentsOf(content, m)
	}
	if said.Text == "" && len(said.Attachments) == 0 {
		return nil, nil //nolint:nilnil // nothing that can be read
	}
	s.quote(said, m)
	return p, s.locate(ctx, p, m.ChannelID, m.GuildID != "")
}

// forwarded reports whether a message was only passed on. Discord does not name its
// author.
func forwarded(m message) bool {
	return m.Reference != nil && m.Reference.Type == referenceForward && len(m.Snapshots) > 0
}

// locate sets the conversation of a message.
func (s *session) locate(ctx context.Context, p *pendingMessage, channel string, server bool) error {
	place, err := s.places.lookup(ctx, channel, server)
	if err != nil {
		return err
	}
	p.place = place
	p.Message.ConversationID, p.Message.ThreadID = place.conversation()
	p.Message.Group = server
	if server {
		p.Message.GroupName = place.group()
	}
	return nil
}

// repliesTo reports whether a message replies to the bot.
func (s *session) repliesTo(m message) bool {
	return !forwarded(m) && m.RepliedTo != nil && m.RepliedTo.Author != nil && m.RepliedTo.Author.ID == s.bot.ID
}

// addressedText is a text without the bot's name.
type addressedText struct {
	text  string
	named bool // the bot is mentioned
}

// parseAddress removes a mention of the bot from a text, unless it would become empty,
// and replaces those of others by their names.
func (s *session) parseAddress(m message) addressedText {
	h := addressedText{text: m.Content}
	for _, mention := range []string{"<@" + s.bot.ID + ">", "<@!" + s.bot.ID + ">"} {
		if strings.Contains(h.text, mention) {
			h.named = true
			h.text = strings.ReplaceAll(h.text, mention, "\x00")
		}
	}
	for _, u := range m.Mentions { // also of the author of the message that this one replies to
		h.named = h.named || u.ID == s.bot.ID && !s.repliesTo(m)
	}
	h.text = plainNames(h.text, m.Mentions)
	if rest := cutMention(h.text); rest != "" {
		h.text = rest
	} else {
		h.text = strings.TrimSpace(strings.ReplaceAll(h.text, "\x00", "@"+s.bot.Username))
	}
	return h
}

// cutMention removes the marks of a mention, and the separators around them.
func cutMention(text string) string {
	if head, rest, found := strings.Cut(strings.TrimSpace(text), "\x00"); found && head == "" {
		text = strings.TrimLeft(rest, " ,:;.!-–—\n")
	}
	text = strings.ReplaceAll(text, " \x00", "")
	return strings.TrimSpace(strings.ReplaceAll(text, "\x00", ""))
}

var emojiPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<a?(:[A-Za-z0-9_]+:)[0-9]+>`)
})

// plainNames replaces mentions of people by their names, and emojis of a server by theirs.
func plainNames(text string, mentioned []user) string {
	if !strings.Contains(text, "<") {
		return text
	}
	for _, u := range mentioned {
		name := "@" + cmp.Or(u.GlobalName, u.Username)
		text = strings.NewReplacer("<@"+u.ID+">", name, "<@!"+u.ID+">", name).Replace(text)
	}
	return emojiPattern().ReplaceAllString(text, "$1")
}

// maxInput is far above Discord's limit of a message, and far below the limit of an
// event.
const maxInput = 64 << 10

// truncateInput shortens a text to fit into an event, with a note.
func truncateInput(text string) string {
	if len(text) <= maxInput {
		return text
	}
	return strings.ToValidUTF8(text[:maxInput], "") + fmt.Sprintf("\n[truncated: the message has %d bytes]", len(text))
}

// parseReaction converts a reaction to a message of the bot.
func (s *session) parseReaction(ctx context.Context, r reaction, seq int64) (*pendingMessage, error) {
	if r.UserID == s.bot.ID || r.AuthorID != s.bot.ID || r.Member != nil && r.Member.User != nil && r.Member.User.Bot {
		return nil, nil //nolint:nilnil // not for the assistant
	}
	emoji := r.Emoji.Name
	if r.Emoji.ID != "" {
		emoji = ":" + emoji + ":"
	}
	// Taken back and put again, it is another one. A resumed session repeats the number.
	p := &pendingMessage{Dedupe: fmt.Sprintf("r/%s/%s/%s/%s/%d", r.MessageID, r.UserID, emoji, s.position.Session, seq)}
	p.Message = contract.UserMessage{Text: emoji, UserID: r.UserID, Language: s.languages[r.UserID],
		SentAt: time.Now().Unix()}
	if r.Member != nil && r.Member.User != nil {
		p.Message.UserName = s.nameOf(r.Member.User, r.Member)
	} else {
		p.Message.UserName = s.lookupName(ctx, r.UserID)
	}
	s.react(ctx, &p.Message, r)
	return p, s.locate(ctx, p, r.ChannelID, r.GuildID != "")
}

// lookupName returns the name of a person, if it can be had.
func (s *session) lookupName(ctx context.Context, id string) string {
	if name := s.names[id]; name != "" {
		return name
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	u := &user{}
	if err := s.api.do(ctx, request{method: http.MethodGet, path: "/users/" + id}, u); err != nil || u.ID == "" {
		return ""
	}
	return s.nameOf(u, nil)
}
