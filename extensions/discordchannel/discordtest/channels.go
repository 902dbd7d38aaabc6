package discordtest

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Types of channels.
const (
	TypeText    = 0
	TypePrivate = 1
	TypeThread  = 11
)

// Channel describes a channel of a server, a thread or a private chat.
type Channel struct {
	ID     string
	Type   int
	Guild  string // empty: a private chat
	Name   string
	Parent string // of a thread
}

// File is a file of a message.
type File struct {
	Name string
	MIME string
	Data []byte
}

// Button is a button below a message.
type Button struct{ Label, ID string }

// Message is a message of a channel.
type Message struct {
	ID       string
	Channel  string
	Author   string // user id
	ByBot    bool
	Text     string
	Nonce    string
	ReplyTo  string
	Buttons  []Button
	Files    []File
	Edits    int
	At       time.Time
	EditedAt time.Time

	attachments []map[string]any // as a client sees them
	extra       map[string]any   // other fields
}

// channel is one channel.
type channel struct {
	Channel
	messages []*Message
	deleted  []Message
	typing   int
	refusal  *apiError // of every send
}

// DM returns the id of the private chat of a user with the bot.
func DM(user string) string { return "7" + fmt.Sprintf("%017s", user) }

// AddChannel adds a channel, unless it exists.
func (s *Server) AddChannel(c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channels[c.ID] == nil {
		s.channels[c.ID] = &channel{Channel: c}
	}
	if c.Guild != "" && s.guilds[c.Guild] == "" {
		s.guilds[c.Guild] = "server " + c.Guild
	}
}

// Block refuses everything that the bot sends to a channel: a person who allows no
// messages, or a missing permission.
func (s *Server) Block(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[id]
	c.refusal = refuse(403, 50013, "Missing Permissions")
	if c.Type == TypePrivate {
		c.refusal = refuse(403, 50007, "Cannot send messages to this user")
	}
}

// Unblock ends Block.
func (s *Server) Unblock(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[id].refusal = nil
}

// private returns the private chat of a user; mu is held.
func (s *Server) private(user string) *channel {
	id := DM(user)
	c := s.channels[id]
	if c == nil {
		c = &channel{Channel: Channel{ID: id, Type: TypePrivate}}
		s.channels[id] = c
	}
	return c
}

// find returns a message; nil: there is none.
func (c *channel) find(id string) *Message {
	for _, m := range c.messages {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// copyOf returns a message that later changes do not touch.
func copyOf(m *Message) Message {
	one := *m
	one.Buttons, one.Files = slices.Clone(m.Buttons), slices.Clone(m.Files)
	return one
}

// History returns all messages of a channel, in order.
func (s *Server) History(id string) (all []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[id]; c != nil {
		for _, m := range c.messages {
			all = append(all, copyOf(m))
		}
	}
	return all
}

// Messages returns the messages that the bot wrote in a channel, in order.
func (s *Server) Messages(id string) []Message {
	return slices.DeleteFunc(s.History(id), func(m Message) bool { return !m.ByBot })
}

// Deleted returns the last versions of messages that were deleted in a channel.
func (s *Server) Deleted(id string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[id]; c != nil {
		return slices.Clone(c.deleted)
	}
	return nil
}

// Typing returns how often the bot has shown in a channel that it types.
func (s *Server) Typing(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[id]; c != nil {
		return c.typing
	}
	return 0
}

// Channels returns the ids of all channels, sorted.
func (s *Server) Channels() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.channels {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// WaitMessages waits until the bot has written at least n messages in a channel, and
// returns them all.
func (s *Server) WaitMessages(ctx context.Context, id string, n int) ([]Message, error) {
	err := s.Wait(ctx, fmt.Sprintf("message %d in channel %s", n, id), func() bool { return len(s.Messages(id)) >= n })
	return s.Messages(id), err
}

// WaitMessage waits for the nth message (from 1) that the bot wrote in a channel.
func (s *Server) WaitMessage(ctx context.Context, id string, n int) (Message, error) {
	all, err := s.WaitMessages(ctx, id, n)
	if err != nil {
		return Message{}, err
	}
	return all[n-1], nil
}

// WaitCalls waits until n requests of a name have arrived.
func (s *Server) WaitCalls(ctx context.Context, name string, n int) error {
	return s.Wait(ctx, fmt.Sprintf("%d calls of %s", n, name), func() bool { return s.Calls(name) >= n })
}

// Calls returns the number of requests of a name, including refused ones: createMessage,
// editMessage, deleteMessage, getMessage, history, typing, me, getUser, openDM,
// getChannel, gateway, application, commands, callback, file.
func (s *Server) Calls(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[name]
}

// Accepted returns the number of messages that the bot has sent.
func (s *Server) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// Refusal is a request that got an error, or no answer.
type Refusal struct {
	Call    string
	Channel string
	Status  int
	Code    int
	Text    string
}

// Refused returns the requests that were refused or broken, in order.
func (s *Server) Refused() []Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// Commands returns the slash commands that the bot has registered.
func (s *Server) Commands() []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}
