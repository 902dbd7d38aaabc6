package telegramtest

import (
	"slices"
	"sync"
	"time"
)

// Kinds of chats, as Telegram names them.
const (
	Private    = "private"
	Group      = "group"
	Supergroup = "supergroup"
)

// Chat describes a chat. Private chats have their user's id, groups a negative one.
type Chat struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Title     string `json:"title,omitempty"`
	Username  string `json:"username,omitempty"`
	FirstName string `json:"first_name,omitempty"`
	Forum     bool   `json:"is_forum,omitempty"`
}

// Message is a message of a chat, written by a person or by a bot.
type Message struct {
	ID       int
	Chat     int64
	Thread   int   // topic; 0 is none, or the general one
	From     int64 // the writer's user id
	ByBot    bool
	Text     string // after parsing
	Entities []Entity
	Media    string // of a bot: photo, document, ...; its caption is the text
	File     File   // of Media
	Buttons  [][]Button
	ReplyTo  int
	Silent   bool
	Edits    int
	At       time.Time // by the server's clock
	EditedAt time.Time
}

// Entity is a formatted piece of a text; offset and length are UTF-16 units.
type Entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
	URL      string `json:"url,omitempty"`
	User     *User  `json:"user,omitempty"`
	Language string `json:"language,omitempty"`
}

// Action is a chat action, such as "typing".
type Action struct {
	Chat   int64
	Thread int
	Action string
	At     time.Time
}

// chat is one chat.
type chat struct {
	info Chat

	mu       sync.Mutex
	nextID   int
	messages []Message
	byBot    int // how many of them a bot wrote
	deleted  []Message
	actions  []Action
	topics   []int
	refusal  *apiError     // the error of every send: blocked, kicked
	changed  chan struct{} // nil without waiters
	rate     bucket
}

// AddChat adds an empty chat, unless it exists.
// Topics are the thread ids of a forum.
func (s *Server) AddChat(info Chat, topics ...int) {
	c := s.chat(info)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range topics {
		if !slices.Contains(c.topics, t) {
			c.topics = append(c.topics, t)
		}
	}
}

// chat returns the chat, and adds it if it does not exist.
func (s *Server) chat(info Chat) *chat {
	if c := s.lookup(info.ID); c != nil {
		return c
	}
	if info.Type == "" {
		switch {
		case info.ID > 0:
			info.Type = Private
		case info.ID < -1_000_000_000_000:
			info.Type = Supergroup
		default:
			info.Type = Group
		}
	}
	s.chatMu.Lock()
	defer s.book.changed()
	defer s.chatMu.Unlock()
	if c := s.chats[info.ID]; c != nil {
		return c
	}
	c := &chat{info: info}
	s.chats[info.ID] = c
	return c
}

func (s *Server) lookup(id int64) *chat {
	s.chatMu.RLock()
	defer s.chatMu.RUnlock()
	return s.chats[id]
}

// refuse sets the error of all further sends to the chat; nil: none.
func (s *Server) refuse(chatID int64, why *apiError) {
	c := s.chat(Chat{ID: chatID})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusal = why
}

// Block simulates that the user of a private chat blocks the bot, or that the bot is
// removed from a group.
func (s *Server) Block(chatID int64) {
	why := forbidden("bot was blocked by the user")
	if chatID < 0 {
		why = forbidden("bot was kicked from the supergroup chat")
	}
	s.refuse(chatID, why)
}

// Unblock ends Block and Migrate.
func (s *Server) Unblock(chatID int64) { s.refuse(chatID, nil) }

// Migrate simulates that a group becomes a supergroup: sends to the old id return the
// new one.
func (s *Server) Migrate(from, to int64) {
	why := badRequest("group chat was upgraded to a supergroup chat")
	why.migrateTo = to
	s.refuse(from, why)
	s.AddChat(Chat{ID: to, Type: Supergroup})
}

// append stores a message and wakes the waiters. The caller holds c.mu.
func (c *chat) append(m Message) Message {
	c.nextID++
	m.ID = c.nextID
	c.messages = append(c.messages, m)
	if m.ByBot {
		c.byBot++
	}
	c.tell()
	return m
}

func (c *chat) tell() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// wait returns a channel that closes at the next change. The caller holds c.mu.
func (c *chat) wait() <-chan struct{} {
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

// find returns the index of a message, or -1. The caller holds c.mu.
func (c *chat) find(id int) int {
	i, ok := slices.BinarySearchFunc(c.messages, id, func(m Message, id int) int { return m.ID - id })
	if !ok {
		return -1
	}
	return i
}
