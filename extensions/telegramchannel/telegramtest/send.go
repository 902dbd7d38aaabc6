package telegramtest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// target returns the chat of a call, or why the bot cannot write to it.
func (s *Server) target(p params) (*chat, *apiError) {
	text := strings.TrimSpace(p["chat_id"])
	if text == "" {
		return nil, badRequest("chat_id is empty")
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, badRequest("chat not found")
	}
	c := s.lookup(id)
	if c == nil {
		return nil, badRequest("chat not found")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c, c.refusal
}

func (c *chat) checkThread(thread int) *apiError {
	if thread == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.topics, thread) {
		return badRequest("message thread not found")
	}
	return nil
}

func (s *Server) sendMessage(b *bot, p params) (any, *apiError) {
	c, refusal := s.target(p)
	if refusal != nil {
		return nil, refusal
	}
	text, entities, refusal := format(p)
	if refusal != nil {
		return nil, refusal
	}
	buttons, refusal := keyboard(p)
	if refusal != nil {
		return nil, refusal
	}
	m := Message{
		Chat: c.info.ID, Thread: int(p.int("message_thread_id")), From: b.user.ID, ByBot: true, Buttons: buttons,
		Text: text, Entities: entities, Silent: p["disable_notification"] == "true",
	}
	if refusal := c.checkThread(m.Thread); refusal != nil {
		return nil, refusal
	}
	var reply struct {
		ID      int  `json:"message_id"`
		Lenient bool `json:"allow_sending_without_reply"`
	}
	if err := p.json("reply_parameters", &reply); err != nil {
		return nil, badRequest("can't parse reply parameters JSON object")
	}
	reply.ID = cmp.Or(reply.ID, int(p.int("reply_to_message_id")))
	if refusal := s.admit(c); refusal != nil {
		return nil, refusal
	}
	c.mu.Lock()
	if reply.ID != 0 {
		if c.find(reply.ID) >= 0 {
			m.ReplyTo = reply.ID
		} else if !reply.Lenient {
			c.mu.Unlock()
			return nil, badRequest("message to be replied not found")
		}
	}
	m.At = s.now()
	m = c.append(m)
	answer := s.wire(c, m, b.user)
	c.mu.Unlock()
	s.book.sent()
	if s.onAccept != nil {
		s.onAccept(m)
	}
	return answer, nil
}

func (s *Server) editMessageText(b *bot, p params) (any, *apiError) {
	c, refusal := s.target(p)
	if refusal != nil {
		return nil, refusal
	}
	text, entities, refusal := format(p)
	if refusal != nil {
		return nil, refusal
	}
	buttons, refusal := keyboard(p)
	if refusal != nil {
		return nil, refusal
	}
	c.mu.Lock()
	i := c.find(int(p.int("message_id")))
	switch {
	case i < 0:
		refusal = badRequest("message to edit not found")
	case c.messages[i].From != b.user.ID:
		refusal = badRequest("message can't be edited")
	case c.messages[i].Text == text && slices.Equal(c.messages[i].Entities, entities) &&
		slices.EqualFunc(c.messages[i].Buttons, buttons, slices.Equal):
		refusal = badRequest("message is not modified: specified new message content and reply markup " +
			"are exactly the same as a current content and reply markup of the message")
	default:
		refusal = s.admit(c)
	}
	if refusal != nil {
		c.mu.Unlock()
		return nil, refusal
	}
	m := &c.messages[i]
	m.Text, m.Entities, m.Buttons, m.EditedAt, m.Edits = text, entities, buttons, s.now(), m.Edits+1
	done := *m
	answer := s.wire(c, done, b.user)
	c.tell()
	c.mu.Unlock()
	if s.onAccept != nil {
		s.onAccept(done)
	}
	return answer, nil
}

func (s *Server) deleteMessage(b *bot, p params) (any, *apiError) {
	c, refusal := s.target(p)
	if refusal != nil {
		return nil, refusal
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.find(int(p.int("message_id")))
	switch {
	case i < 0:
		return nil, badRequest("message to delete not found")
	case c.messages[i].From != b.user.ID && c.info.Type != Private:
		return nil, badRequest("message can't be deleted")
	}
	if c.messages[i].ByBot {
		c.byBot--
	}
	c.deleted = append(c.deleted, c.messages[i])
	c.messages = slices.Delete(c.messages, i, i+1)
	c.tell()
	return true, nil
}

var actions = []string{
	"typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice",
	"upload_document", "choose_sticker", "find_location", "record_video_note", "upload_video_note",
}

func (s *Server) sendChatAction(p params) (any, *apiError) {
	c, refusal := s.target(p)
	if refusal != nil {
		return nil, refusal
	}
	if !slices.Contains(actions, p["action"]) {
		return nil, &apiError{code: http.StatusBadRequest, description: "Bad Request: wrong parameter action in request"}
	}
	a := Action{Chat: c.info.ID, Thread: int(p.int("message_thread_id")), Action: p["action"], At: s.now()}
	if refusal := c.checkThread(a.Thread); refusal != nil {
		return nil, refusal
	}
	if s.limits.Actions {
		if refusal := s.admit(c); refusal != nil {
			return nil, refusal
		}
	}
	c.mu.Lock()
	c.actions = append(c.actions, a)
	c.tell()
	c.mu.Unlock()
	return true, nil
}
