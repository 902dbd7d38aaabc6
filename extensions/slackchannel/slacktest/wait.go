package slacktest

import (
	"context"
	"fmt"
	"slices"
)

// Wait waits until done, which may call any method of the server, reports true.
func (s *Server) Wait(ctx context.Context, what string, done func() bool) error {
	for {
		s.mu.Lock()
		moved := s.moved
		s.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("slacktest: waiting for %s: %w (refused: %v)", what, ctx.Err(), s.Refused())
		}
	}
}

// Messages returns the messages of the bot in a conversation, in order.
func (s *Server) Messages(channel string) []Message {
	return slices.DeleteFunc(s.History(channel), func(m Message) bool { return !m.ByBot })
}

// History returns all messages of a conversation, in order.
func (s *Server) History(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.convs[channel]; c != nil {
		return slices.Clone(c.messages)
	}
	return nil
}

// Deleted returns the messages that the bot deleted in a conversation.
func (s *Server) Deleted(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.convs[channel]; c != nil {
		return slices.Clone(c.deleted)
	}
	return nil
}

// Accepted returns the number of messages that the bot sent to all conversations.
func (s *Server) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// WaitMessages waits until the bot has written n messages in a conversation, and returns
// them all.
func (s *Server) WaitMessages(ctx context.Context, channel string, n int) ([]Message, error) {
	err := s.Wait(ctx, fmt.Sprintf("%d messages in %s", n, channel), func() bool { return len(s.Messages(channel)) >= n })
	return s.Messages(channel), err
}

// WaitConnected waits until the app has a connection.
func (s *Server) WaitConnected(ctx context.Context) error {
	return s.Wait(ctx, "a connection", func() bool { now, _ := s.Connections(); return now > 0 })
}

// WaitAcknowledged waits until the app has acknowledged every envelope.
func (s *Server) WaitAcknowledged(ctx context.Context) error {
	return s.Wait(ctx, "acknowledgements", func() bool { return s.Unacknowledged() == 0 })
}
