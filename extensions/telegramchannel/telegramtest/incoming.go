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
	File     *File  // of Media; nil: a small one
	Album    string // its media_group_id
	Edits    int    // the message id whose text this replaces: an edited_message
	Forward  any    // its forward_origin; nil: From wrote it
	Via      *User  // the bot that it was sent through
}

// Sent is the result of an [Incoming].
type Sent struct {
	Update  int64
	Message int
	File    string // its file_id
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
	kind, content, sent := s.compose(in)
	sent.Update = s.current().add(kind, content)
	return sent
}

func (s *Server) compose(in Incoming) (kind string, content map[string]any, sent Sent) {
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
	sent.Message = m.ID
	if in.Media != "" {
		sent.File = s.addMedia(content, in)
	}
	if in.Album != "" {
		content["media_group_id"] = in.Album
	}
	return kind, content, sent
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

// smallFiles are the contents of files that a test does not give.
var smallFiles = map[string]File{
	"photo":      {Data: []byte("\xff\xd8\xff\xe0\x00\x10JFIF\x00")},
	"voice":      {MIME: "audio/ogg", Data: []byte("OggS\x00")},
	"audio":      {MIME: "audio/mpeg", Data: []byte("\xff\xfb\x90\x64\x00")},
	"video":      {MIME: "video/mp4", Data: []byte("\x00\x00\x00\x18ftypmp42")},
	"video_note": {Data: []byte("\x00\x00\x00\x18ftypmp42")},
	"animation":  {MIME: "video/mp4", Data: []byte("\x00\x00\x00\x18ftypmp42")},
	"sticker":    {Data: []byte("RIFF\x00\x00\x00\x00WEBPVP8 ")},
	"document":   {Name: "notes.txt", MIME: "text/plain", Data: []byte("notes")},
}

// addMedia turns a message into one with media, and returns the id of its file.
func (s *Server) addMedia(w map[string]any, in Incoming) (id string) {
	delete(w, "text")
	delete(w, "entities")
	if in.Text != "" {
		w["caption"] = in.Text
		if len(in.Entities) > 0 {
			w["caption_entities"] = in.Entities
		}
	}
	f := smallFiles[in.Media]
	if in.File != nil {
		f = *in.File
	}
	switch in.Media {
	case "location":
		w["location"] = map[string]any{"latitude": 52.52, "longitude": 13.4}
		return ""
	case "contact":
		w["contact"] = map[string]any{"phone_number": "+491", "first_name": "Someone"}
		return ""
	case "poll":
		w["poll"] = map[string]any{"id": "1", "question": "?", "options": []any{}, "type": "regular"}
		return ""
	case "new_chat_members":
		w["new_chat_members"] = []any{in.From}
		return ""
	}
	id = s.store(f, in.Media+"s")
	file := map[string]any{"file_id": id, "file_unique_id": id, "file_size": f.size(), "width": 90, "height": 90,
		"duration": 3, "length": 90}
	if f.Name != "" {
		file["file_name"] = f.Name
	}
	if f.MIME != "" {
		file["mime_type"] = f.MIME
	}
	w[in.Media] = file
	if in.Media == "photo" {
		file["width"], file["height"] = 1280, 960
		small := s.store(File{Data: []byte("a thumbnail")}, "thumbnails")
		w["photo"] = []any{
			map[string]any{"file_id": small, "file_unique_id": small, "file_size": 11, "width": 90, "height": 67}, file,
		}
	}
	return id
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
	kind, content, sent := s.compose(in)
	b := s.current()
	sent.Update = b.add(kind, content)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.push(update{id: sent.Update, kind: kind, body: encodeUpdate(sent.Update, kind, content), forced: true})
	return sent
}

// InjectBatch queues messages so that one getUpdates returns them all; with
// reversed, the later ones come first, with their higher ids.
func (s *Server) InjectBatch(reversed bool, messages ...Incoming) []Sent {
	b := s.current()
	out := make([]Sent, len(messages))
	batch := make([]update, len(messages))
	for i, in := range messages {
		kind, content, sent := s.compose(in)
		b.mu.Lock()
		b.nextID++
		n := b.nextID
		b.mu.Unlock()
		sent.Update = n
		out[i] = sent
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
