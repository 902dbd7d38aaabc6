package discordtest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Incoming is a message that a person writes.
type Incoming struct {
	Channel string // empty: the private chat with From
	From    string // user id
	Text    string
	ReplyTo string // message id in the same channel
	Silent  bool   // a reply that does not mention the author of the other message
	Forward string // a text that the person passes on instead of writing one
	Files   []File
	Voice   bool
	Sticker string         // its name
	Extra   map[string]any // other fields of the message
}

// Mention is what mentions the bot in a text.
const Mention = "<@" + BotID + ">"

// Say sends a text of the user in their private chat with the bot.
func (s *Server) Say(user, text string) Message { return s.Inject(Incoming{From: user, Text: text}) }

// Inject sends a person's message to the bot.
func (s *Server) Inject(in Incoming) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inject(in, true)
}

// Miss sends a person's message of which the bot is told nothing, as one of the time in
// which its session had ended.
func (s *Server) Miss(in Incoming) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inject(in, false)
}

func (s *Server) inject(in Incoming, tell bool) Message {
	c := s.private(in.From)
	if in.Channel != "" {
		c = s.channels[in.Channel]
	}
	if c == nil {
		panic("discordtest: unknown channel " + in.Channel)
	}
	m := &Message{ID: s.newID(), Channel: c.ID, Author: in.From, Text: in.Text, ReplyTo: in.ReplyTo, At: s.now(),
		extra: map[string]any{}}
	maps.Copy(m.extra, in.Extra)
	files := s.attach(in.Files)
	if in.Voice {
		m.extra["flags"] = 1 << 13
	}
	if in.Sticker != "" {
		id := s.newID()
		s.files["/api/v10/stickers/"+id+".png"] = &storedFile{File: File{Data: []byte("\x89PNG\r\n\x1a\nsticker")}}
		m.extra["sticker_items"] = []any{map[string]any{"id": id, "name": in.Sticker, "format_type": 1}}
	}
	if in.Forward != "" {
		m.extra["message_reference"] = map[string]any{"type": 1, "message_id": "1", "channel_id": "2"}
		m.extra["message_snapshots"] = []any{map[string]any{"message": map[string]any{
			"content": in.Forward, "attachments": files, "timestamp": stamp(m.At), "type": 0, "mentions": []any{},
		}}}
		files = nil
	}
	m.attachments, m.Files = files, in.Files
	if in.Silent {
		m.extra["silent"] = true
	}
	c.messages = append(c.messages, m)
	if tell {
		s.dispatch("MESSAGE_CREATE", c, s.render(c, m, true))
	}
	s.change()
	return copyOf(m)
}

// Edit changes the text of a person's message.
func (s *Server) Edit(channel, id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	m := c.find(id)
	m.Text, m.EditedAt = text, s.now()
	m.Edits++
	s.dispatch("MESSAGE_UPDATE", c, s.render(c, m, true))
	s.change()
}

// Unfurl repeats a message with the preview of a link, which is not an edit.
func (s *Server) Unfurl(channel, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	s.dispatch("MESSAGE_UPDATE", c, s.render(c, c.find(id), true))
}

// React puts a person's emoji on a message.
func (s *Server) React(channel, id, user, emoji string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	d := map[string]any{
		"user_id": user, "channel_id": channel, "message_id": id, "message_author_id": c.find(id).Author,
		"emoji": map[string]any{"id": nil, "name": emoji},
	}
	if c.Guild != "" {
		d["guild_id"] = c.Guild
		d["member"] = map[string]any{"user": s.renderUser(user)}
	}
	s.dispatch("MESSAGE_REACTION_ADD", c, d)
}

// Expire makes the addresses of all files expire; a message that is read again has new
// ones.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for address, f := range s.files {
		if !f.expired {
			f.expired = true
			s.files[address] = f
		}
	}
}

// LoseFiles deletes all files.
func (s *Server) LoseFiles() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = map[string]*storedFile{}
	for _, c := range s.channels {
		for _, m := range c.messages {
			m.attachments = nil
		}
	}
}

// storedFile is a file that can be downloaded.
type storedFile struct {
	File
	expired bool
}

// attach stores files and returns them as attachments; mu is held.
func (s *Server) attach(files []File) (all []map[string]any) {
	for _, f := range files {
		id := s.newID()
		address := fmt.Sprintf("/attachments/%s/%s", id, f.Name)
		s.files[address] = &storedFile{File: f}
		all = append(all, map[string]any{"id": id, "filename": f.Name, "content_type": f.MIME,
			"size": len(f.Data), "url": s.base() + address, "address": address})
	}
	return all
}

// renew gives the files of a message that have expired new addresses; mu is held.
func (s *Server) renew(m *Message) {
	for _, a := range m.attachments {
		old, _ := a["address"].(string)
		f := s.files[old]
		if f == nil || !f.expired {
			continue
		}
		address := old + "x"
		s.files[address] = &storedFile{File: f.File}
		a["address"], a["url"] = address, s.base()+address
	}
}

// stamp returns a time as Discord writes it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

func (s *Server) renderUser(id string) map[string]any {
	if id == BotID {
		return map[string]any{"id": BotID, "username": BotName, "bot": true, "discriminator": "0000"}
	}
	u := s.user(id)
	return map[string]any{"id": id, "username": u.Username, "global_name": u.GlobalName, "discriminator": "0"}
}

var mentionPattern = regexp.MustCompile(`<@!?([0-9]+)>`)

// render returns a message as clients see it; guild: with the fields of an event. mu is
// held.
func (s *Server) render(c *channel, m *Message, event bool) map[string]any {
	d := map[string]any{
		"id": m.ID, "channel_id": c.ID, "type": 0, "flags": 0, "content": m.Text, "timestamp": stamp(m.At),
		"edited_timestamp": nil, "author": s.renderUser(m.Author), "attachments": orEmpty(m.attachments),
		"embeds": []any{}, "mention_roles": []any{}, "mention_everyone": false, "pinned": false, "tts": false,
	}
	if !m.EditedAt.IsZero() {
		d["edited_timestamp"] = stamp(m.EditedAt)
	}
	if m.Nonce != "" {
		d["nonce"] = m.Nonce
	}
	mentions, seen := []any{}, map[string]bool{}
	mention := func(id string) {
		if !seen[id] {
			seen[id] = true
			mentions = append(mentions, s.renderUser(id))
		}
	}
	for _, found := range mentionPattern.FindAllStringSubmatch(m.Text, -1) {
		mention(found[1])
	}
	if m.ReplyTo != "" {
		d["type"] = 19
		d["message_reference"] = map[string]any{"type": 0, "message_id": m.ReplyTo, "channel_id": c.ID}
		if to := c.find(m.ReplyTo); to != nil {
			inner := *to
			inner.ReplyTo = "" // one level only
			d["referenced_message"] = s.render(c, &inner, false)
			if m.extra["silent"] == nil {
				mention(to.Author)
			}
		} else {
			d["referenced_message"] = nil
		}
	}
	d["mentions"] = mentions
	if len(m.Buttons) > 0 {
		var row []any
		for _, b := range m.Buttons {
			row = append(row, map[string]any{"type": 2, "style": 2, "label": b.Label, "custom_id": b.ID})
		}
		d["components"] = []any{map[string]any{"type": 1, "components": row}}
	}
	maps.Copy(d, m.extra)
	delete(d, "silent")
	if event && c.Guild != "" {
		d["guild_id"] = c.Guild
		d["member"] = map[string]any{"nick": nil, "roles": []any{}}
	}
	return d
}

func orEmpty(all []map[string]any) []map[string]any {
	if all == nil {
		return []map[string]any{}
	}
	return all
}

// withoutContent returns a message as a bot without the intent sees it.
func withoutContent(c *channel, d map[string]any) map[string]any {
	text, _ := d["content"].(string)
	author, _ := d["author"].(map[string]any)
	if c.Guild == "" || strings.Contains(text, Mention) || author["id"] == BotID {
		return d
	}
	bare := maps.Clone(d)
	bare["content"], bare["attachments"] = "", []any{}
	return bare
}

// interaction is a press or a slash command that waits for its answer.
type interaction struct {
	token    string
	channel  string
	message  string
	at       time.Time
	answered bool
}

// Press presses a button of the bot's message, as a person does. It reports whether
// there is one with the label.
func (s *Server) Press(channel, id, user, label string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	m := c.find(id)
	if m == nil {
		return false
	}
	for _, b := range m.Buttons {
		if b.Label == label {
			s.interact(c, user, m, 3, map[string]any{"custom_id": b.ID, "component_type": 2})
			return true
		}
	}
	return false
}

// PressID presses a button that the message may not have any more, as a person does who
// still sees it.
func (s *Server) PressID(channel, id, user, button string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	s.interact(c, user, c.find(id), 3, map[string]any{"custom_id": button, "component_type": 2})
}

// Command uses a slash command of the bot in a channel; empty: the private chat.
func (s *Server) Command(channel, user, name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.private(user)
	if channel != "" {
		c = s.channels[channel]
	}
	data := map[string]any{"id": "1", "type": 1, "name": name}
	if text != "" {
		data["options"] = []any{map[string]any{"type": 3, "name": "text", "value": text}}
	}
	s.interact(c, user, nil, 2, data)
}

// interact dispatches an interaction; mu is held.
func (s *Server) interact(c *channel, user string, m *Message, kind int, data map[string]any) {
	id := s.newID()
	i := &interaction{token: "interaction-token-" + id, channel: c.ID, at: s.now()}
	d := map[string]any{
		"id": id, "application_id": BotID, "type": kind, "token": i.token, "channel_id": c.ID, "data": data, "version": 1,
		"locale": s.user(user).Locale,
	}
	if m != nil {
		i.message = m.ID
		d["message"] = s.render(c, m, false)
	}
	if c.Guild != "" {
		d["guild_id"] = c.Guild
		d["member"] = map[string]any{"user": s.renderUser(user)}
	} else {
		d["user"] = s.renderUser(user)
	}
	s.interactions[id] = i
	s.dispatch("INTERACTION_CREATE", c, d)
	s.change()
}

// Unanswered returns how many interactions the bot has not answered.
func (s *Server) Unanswered() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.interactions {
		if !i.answered {
			n++
		}
	}
	return n
}

// Ephemeral returns the answers to interactions that only one person sees, in order.
func (s *Server) Ephemeral() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ephemeral)
}

// Emit dispatches any event.
func (s *Server) Emit(kind string, data any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatch(kind, nil, data)
}
