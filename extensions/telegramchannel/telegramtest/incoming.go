package telegramtest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Incoming is a message that a person writes.
type Incoming struct {
	Chat     Chat // zero: the private chat with From
	From     User
	Text     string // with Media: the caption
	Entities []Entity
	Thread   int // topic of a forum; added if it does not exist
	ReplyTo  int // message id in the same chat
	Media    string
	Edits    int   // the message id whose text this replaces: an edited_message
	Forward  any   // its forward_origin; nil: From wrote it
	Via      *User // the bot that it was sent through
}

// Sent is the result of an [Incoming].
type Sent struct {
	Update  int64
	Message int
}

// Say sends a text of the user in the private chat with the bot.
func (s *Server) Say(userID int64, text string) Sent {
	return s.Inject(Incoming{From: User{ID: userID, FirstName: "User"}, Text: text})
}

// Inject sends a person's message to the bot. Mentions and commands in the text
// become entities, as in Telegram, unless Entities are given.
// Media is photo, voice, document, sticker, video, video_note, audio,
// animation, location, contact, poll or any other field of a message.
func (s *Server) Inject(in Incoming) Sent {
	kind, content, id := s.compose(in)
	return Sent{Update: s.current().add(kind, content), Message: id}
}

func (s *Server) compose(in Incoming) (kind string, content map[string]any, id int) {
	if in.From.ID == 0 {
		in.From = User{ID: 4242, FirstName: "User"}
	}
	if in.From.FirstName == "" {
		in.From.FirstName = "User"
	}
	if in.Chat.ID == 0 {
		in.Chat = Chat{ID: in.From.ID, Type: Private, FirstName: in.From.FirstName, Username: in.From.Username}
	}
	c := s.chat(in.Chat)
	if in.Entities == nil {
		in.Entities = detect(in.Text)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if in.Thread != 0 && !slices.Contains(c.topics, in.Thread) {
		c.topics = append(c.topics, in.Thread)
	}
	m := Message{
		Chat: c.info.ID, Thread: in.Thread, From: in.From.ID, Text: in.Text,
		Entities: in.Entities, ReplyTo: in.ReplyTo, At: s.now(),
	}
	kind = "message"
	if i := c.find(in.Edits); in.Edits != 0 && i >= 0 {
		kind = "edited_message"
		old := &c.messages[i]
		old.Text, old.Entities, old.EditedAt, old.Edits = in.Text, in.Entities, s.now(), old.Edits+1
		m = *old
		c.tell()
	} else {
		m = c.append(m)
	}
	content = s.wire(c, m, in.From)
	if in.Forward != nil {
		content["forward_origin"] = in.Forward
	}
	if in.Via != nil {
		content["via_bot"] = *in.Via
	}
	if in.Media != "" {
		addMedia(content, in)
	}
	return kind, content, m.ID
}

// wire encodes a message as Telegram does. The caller holds c.mu.
func (s *Server) wire(c *chat, m Message, from User) map[string]any {
	w := map[string]any{"message_id": m.ID, "from": from, "chat": c.info, "date": m.At.Unix()}
	if m.Text != "" {
		w["text"] = m.Text
	}
	if len(m.Entities) > 0 {
		w["entities"] = m.Entities
	}
	if m.Thread != 0 {
		w["message_thread_id"] = m.Thread
		w["is_topic_message"] = c.info.Forum
	}
	if m.Edits > 0 {
		w["edit_date"] = m.EditedAt.Unix()
	}
	if i := c.find(m.ReplyTo); m.ReplyTo != 0 && i >= 0 {
		to := c.messages[i]
		writer := User{ID: to.From, FirstName: "User"}
		if to.ByBot {
			writer = s.writer(to.From)
		}
		w["reply_to_message"] = map[string]any{
			"message_id": to.ID, "from": writer, "chat": c.info, "date": to.At.Unix(), "text": to.Text,
		}
	}
	return w
}

func (s *Server) writer(id int64) User {
	s.botMu.RLock()
	defer s.botMu.RUnlock()
	for _, b := range s.bots {
		if b.user.ID == id {
			return b.user
		}
	}
	return User{ID: id, IsBot: true, FirstName: "Former bot"}
}

func addMedia(w map[string]any, in Incoming) {
	delete(w, "text")
	delete(w, "entities")
	if in.Text != "" {
		w["caption"] = in.Text
		if len(in.Entities) > 0 {
			w["caption_entities"] = in.Entities
		}
	}
	file := map[string]any{"file_id": "AgAD" + in.Media, "file_unique_id": in.Media, "width": 90, "height": 90,
		"duration": 3, "length": 90}
	switch in.Media {
	case "photo":
		w["photo"] = []any{file}
	case "location":
		w["location"] = map[string]any{"latitude": 52.5, "longitude": 13.4}
	case "contact":
		w["contact"] = map[string]any{"phone_number": "+491", "first_name": "Someone"}
	case "poll":
		w["poll"] = map[string]any{"id": "1", "question": "?", "options": []any{}, "type": "regular"}
	case "new_chat_members":
		w["new_chat_members"] = []any{in.From}
	default:
		w[in.Media] = file
	}
}

var detectable = regexp.MustCompile(
	`(?:^|[^\pL\pN_/@])(/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?|@[A-Za-z][A-Za-z0-9_]{2,31})`)

// detect finds the mentions and commands in a text.
func detect(text string) []Entity {
	var found []Entity
	for at := 0; at < len(text); {
		loc := detectable.FindStringSubmatchIndex(text[at:])
		if loc == nil {
			return found
		}
		from, to := at+loc[2], at+loc[3]
		kind := "mention"
		if strings.HasPrefix(text[from:to], "/") {
			kind = "bot_command"
		}
		found = append(found, Entity{Type: kind, Offset: utf16Len(text[:from]), Length: utf16Len(text[from:to])})
		at = to
	}
	return found
}

// InjectRaw queues a raw update; kind is its field (message, callback_query, ...). Any
// id is allowed: a duplicate or one out of order is returned to the bot once, for any
// offset.
func (s *Server) InjectRaw(id int64, kind string, content json.RawMessage) {
	b := s.current()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.push(update{id: id, kind: kind, body: encodeUpdate(id, kind, content), forced: true})
}

// InjectTwice is Inject with the update queued twice under one id.
func (s *Server) InjectTwice(in Incoming) Sent {
	kind, content, id := s.compose(in)
	b := s.current()
	update1 := b.add(kind, content)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.push(update{id: update1, kind: kind, body: encodeUpdate(update1, kind, content), forced: true})
	return Sent{Update: update1, Message: id}
}

// InjectBatch queues messages so that one getUpdates returns them all; with
// reversed, the later ones come first, with their higher ids.
func (s *Server) InjectBatch(reversed bool, messages ...Incoming) []Sent {
	b := s.current()
	out := make([]Sent, len(messages))
	batch := make([]update, len(messages))
	for i, in := range messages {
		kind, content, id := s.compose(in)
		b.mu.Lock()
		b.nextID++
		n := b.nextID
		b.mu.Unlock()
		out[i] = Sent{Update: n, Message: id}
		batch[i] = update{id: n, kind: kind, body: encodeUpdate(n, kind, content)}
	}
	if reversed {
		slices.Reverse(batch)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range batch {
		b.push(u)
	}
	return out
}

// SkipUpdateIDs skips update ids, as Telegram does after a quiet week.
func (s *Server) SkipUpdateIDs(n int64) {
	b := s.current()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nextID += n
}

// current returns the bot that gets the updates.
func (s *Server) current() *bot {
	s.botMu.RLock()
	defer s.botMu.RUnlock()
	return s.bot
}
