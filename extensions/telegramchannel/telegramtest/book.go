package telegramtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Call is a request that arrived.
type Call struct {
	Method string // in lower case
	Chat   int64
	At     time.Time
}

// Refusal is a request that got an error, or no answer.
type Refusal struct {
	Call
	Status      int
	Description string
}

// book records the server's requests.
type book struct {
	mu          sync.Mutex
	calls       map[string]int
	refused     []Refusal
	connections int
	messages    int
	presses     []Press
	moved       chan struct{} // nil without waiters
}

func (b *book) init() { b.calls = map[string]int{} }

// update changes the book under its lock and wakes the waiters.
func (b *book) update(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
	if b.moved != nil {
		close(b.moved)
		b.moved = nil
	}
}

func (b *book) called(c Call) { b.update(func() { b.calls[c.Method]++ }) }
func (b *book) connected()    { b.update(func() { b.connections++ }) }
func (b *book) sent()         { b.update(func() { b.messages++ }) }
func (b *book) changed()      { b.update(func() {}) }
func (b *book) answered(c Call, status int, text string) {
	b.update(func() { b.refused = append(b.refused, Refusal{Call: c, Status: status, Description: text}) })
}

// Calls returns the number of requests of the method, including refused ones.
func (s *Server) Calls(method string) int {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	return s.book.calls[strings.ToLower(method)]
}

// Connections returns the number of connections since the server was created.
func (s *Server) Connections() int {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	return s.book.connections
}

// Accepted returns the number of messages that bots sent to all chats.
func (s *Server) Accepted() int {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	return s.book.messages
}

// Refused returns the requests that were refused or broken, in order.
func (s *Server) Refused() []Refusal {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	return slices.Clone(s.book.refused)
}

// Wait waits until done reports true. It calls done after every request and after each
// delivered update; done may call any method of the server.
func (s *Server) Wait(ctx context.Context, what string, done func() bool) error {
	for {
		s.book.mu.Lock()
		if s.book.moved == nil {
			s.book.moved = make(chan struct{})
		}
		moved := s.book.moved
		s.book.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("telegramtest: waiting for %s: %w", what, ctx.Err())
		}
	}
}

// WaitCalls waits until n requests of the method have arrived.
func (s *Server) WaitCalls(ctx context.Context, method string, n int) error {
	return s.Wait(ctx, fmt.Sprintf("%d calls of %s", n, method), func() bool { return s.Calls(method) >= n })
}

// WaitRefused waits until n requests have been refused, and returns them.
func (s *Server) WaitRefused(ctx context.Context, n int) ([]Refusal, error) {
	err := s.Wait(ctx, fmt.Sprintf("%d refusals", n), func() bool { return len(s.Refused()) >= n })
	return s.Refused(), err
}

// WaitConfirmed waits until the bot has requested an offset above the update's id.
func (s *Server) WaitConfirmed(ctx context.Context, update int64) error {
	return s.Wait(ctx, fmt.Sprintf("update %d to be confirmed", update), func() bool {
		b := s.current()
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.confirmed > update
	})
}

// WaitAccepted waits until bots have sent n messages to all chats together.
func (s *Server) WaitAccepted(ctx context.Context, n int) error {
	return s.Wait(ctx, fmt.Sprintf("%d messages", n), func() bool { return s.Accepted() >= n })
}

// Messages returns the messages that bots wrote in the chat, in order.
func (s *Server) Messages(chatID int64) []Message {
	return slices.DeleteFunc(s.History(chatID), func(m Message) bool { return !m.ByBot })
}

// History returns all messages of the chat, in order.
func (s *Server) History(chatID int64) []Message {
	c := s.lookup(chatID)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.messages)
}

// Deleted returns the last versions of messages that bots deleted in the chat, in order.
func (s *Server) Deleted(chatID int64) []Message {
	c := s.lookup(chatID)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.deleted)
}

// Chats returns the ids of all known chats, ascending.
func (s *Server) Chats() []int64 {
	s.chatMu.RLock()
	defer s.chatMu.RUnlock()
	ids := make([]int64, 0, len(s.chats))
	for id := range s.chats {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Actions returns the chat actions shown in the chat, in order.
func (s *Server) Actions(chatID int64) []Action {
	c := s.lookup(chatID)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.actions)
}

// WaitMessage waits for the nth message (from 1) that bots wrote in the chat.
func (s *Server) WaitMessage(ctx context.Context, chatID int64, n int) (Message, error) {
	all, err := s.WaitMessages(ctx, chatID, n)
	if err != nil {
		return Message{}, err
	}
	return all[n-1], nil
}

// WaitMessages waits until bots have written at least n messages in the chat, and returns them all.
func (s *Server) WaitMessages(ctx context.Context, chatID int64, n int) ([]Message, error) {
	err := s.waitChat(ctx, chatID, fmt.Sprintf("message %d", n), func(c *chat) bool { return c.byBot >= n })
	return s.Messages(chatID), err
}

// WaitActions waits until at least n chat actions were shown in the chat.
func (s *Server) WaitActions(ctx context.Context, chatID int64, n int) error {
	return s.waitChat(ctx, chatID, fmt.Sprintf("chat action %d", n), func(c *chat) bool { return len(c.actions) >= n })
}

// WaitEdit waits until the bot's nth message (from 1) in the chat was edited, and returns it.
func (s *Server) WaitEdit(ctx context.Context, chatID int64, n int) (Message, error) {
	var m Message
	err := s.waitChat(ctx, chatID, fmt.Sprintf("edit of message %d", n), func(c *chat) bool {
		seen := 0
		for _, m = range c.messages {
			if m.ByBot {
				if seen++; seen == n {
					return m.Edits > 0
				}
			}
		}
		return false
	})
	return m, err
}

func (s *Server) waitChat(ctx context.Context, chatID int64, what string, done func(*chat) bool) error {
	known := func() bool { return s.lookup(chatID) != nil }
	if err := s.Wait(ctx, fmt.Sprintf("%s in chat %d, which is unknown", what, chatID), known); err != nil {
		return err
	}
	c := s.lookup(chatID)
	for {
		c.mu.Lock()
		if done(c) {
			c.mu.Unlock()
			return nil
		}
		changed := c.wait()
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("telegramtest: waiting for %s in chat %d: %w (the chat has %v; refused: %v)",
				what, chatID, ctx.Err(), s.History(chatID), s.Refused())
		}
	}
}
