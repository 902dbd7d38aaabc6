package clichannel

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/ownuser"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

const (
	helloTimeout = 5 * time.Second
	writeTimeout = 10 * time.Second
	maxBadFrames = 5
	// shutdownTimeout is how long a stop waits for a terminal to read its queue.
	shutdownTimeout = 2 * time.Second
)

// terminal is one attached chat.
type terminal struct {
	conn         *wire.Conn
	id           string
	conversation string
	agent        string
	language     string
	script       bool
	queue        *queue
	offered      *wire.Recent // ids of messages queued for it; guarded by hub.mu
	uploads      *uploads
	fetches      fetches
}

// wants reports whether a message to a conversation is for the terminal.
func (t *terminal) wants(conversation string) bool {
	if conversation == "" {
		return !t.script
	}
	return t.conversation == conversation
}

// serve serves one connection.
func (s *server) serve(ctx context.Context, c *ownuser.Conn) {
	log := s.kernel.Log()
	conn := wire.NewConn(c, s.writeTimeout)
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() { stop() }()
	t, err := s.handshake(conn)
	if err != nil {
		log.Debug("handshake with a terminal failed", "error", err)
		refuse(conn, err)
		return
	}
	t.queue.put(wire.Frame{
		Type: wire.Welcome, Version: wire.Version, Conversation: t.conversation,
		Text: s.config.Greeting, Hint: s.config.Hint, Commands: s.commands(ctx), Attach: true,
	})
	if !s.hub.attach(t) {
		refuse(conn, fmt.Errorf("%d terminals are attached, which is the limit: close one", maxTerminals))
		return
	}
	c.Authenticated()
	log.Debug("terminal attached", "terminal", t.id, "conversation", t.conversation)
	if stop() {
		stop = context.AfterFunc(ctx, t.shutdown)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		if err := t.write(); err != nil {
			log.Info("terminal detached", "terminal", t.id, "error", err)
		}
	}()
	using, cancel := context.WithCancel(ctx)
	defer t.fetches.running.Wait()
	defer cancel()
	err = s.read(using, t)
	cancel()
	t.uploads.abort()
	s.hub.detach(t)
	if err != nil {
		t.queue.put(wire.Frame{Type: wire.Error, Text: err.Error(), Fatal: errors.Is(err, wire.ErrTooLong)})
	}
	t.queue.close()
	<-written
}

// commands returns the command names that a terminal completes, or none if the
// kernel does not answer within a second.
func (s *server) commands(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	all, err := s.kernel.Commands(ctx)
	if err != nil {
		s.kernel.Log().Debug("list commands", "error", err)
	}
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.GetName()
	}
	return strings.Join(names, " ")
}

// refuse sends a terminal the reason why it cannot attach.
func refuse(conn *wire.Conn, err error) {
	_ = conn.Write(wire.Frame{Type: wire.Error, Text: err.Error(), Fatal: true})
}

// handshake reads the terminal's hello.
func (s *server) handshake(conn *wire.Conn) (*terminal, error) {
	if err := conn.SetReadTimeout(s.helloTimeout); err != nil {
		return nil, err
	}
	f, err := conn.Read()
	switch {
	case err != nil:
		return nil, err
	case f.Type != wire.Hello:
		return nil, fmt.Errorf("got a %s frame instead of hello", f.Type)
	case f.Version != wire.Version:
		return nil, fmt.Errorf("the terminal uses version %d of the chat protocol, the kernel version %d: "+
			"use the same switchboard for both", f.Version, wire.Version)
	case s.token != "" && subtle.ConstantTimeCompare([]byte(s.token), []byte(f.Token)) != 1:
		return nil, fmt.Errorf("the terminal sent a wrong token: it must read the token from %s", wire.TokenName)
	}
	if err := conn.SetReadTimeout(0); err != nil {
		return nil, err
	}
	t := &terminal{
		conn: conn, id: f.Terminal, conversation: f.Conversation, agent: f.Agent, language: f.Language, script: f.Script,
		queue: newQueue(), offered: wire.NewRecent(keepIDs),
		uploads: newUploads(s.kernel), fetches: fetches{slots: make(chan struct{}, maxFetches)},
	}
	switch {
	case f.New:
		t.conversation = wire.NewID()
	case t.conversation == "":
		t.conversation = wire.DefaultConversation
	}
	return t, nil
}

// shutdown ends the connection once its queue is written, when the extension stops.
func (t *terminal) shutdown() {
	t.queue.put(wire.Frame{Type: wire.State, Text: "the kernel is stopping"})
	t.queue.close()
	time.AfterFunc(shutdownTimeout, func() { _ = t.conn.Close() })
}

// write writes queued frames until the queue ends, then closes the connection.
func (t *terminal) write() error {
	defer t.conn.Close()
	for {
		frames, err := t.queue.take()
		if errors.Is(err, errClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, f := range frames {
			if err := t.conn.Write(f); err != nil {
				t.queue.close()
				if errors.Is(err, os.ErrDeadlineExceeded) {
					return errSlow
				}
				return nil
			}
		}
	}
}

// read handles the terminal's frames until it disconnects. An error is sent to the
// terminal.
func (s *server) read(ctx context.Context, t *terminal) error {
	garbage := 0
	for {
		f, err := t.conn.Read()
		switch {
		case errors.Is(err, wire.ErrBadFrame):
			if garbage++; garbage == maxBadFrames {
				return fmt.Errorf("too many bad frames: %w", err)
			}
			t.queue.put(wire.Frame{Type: wire.Error, Text: err.Error()})
			continue
		case errors.Is(err, wire.ErrTooLong):
			return err
		case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			s.kernel.Log().Debug("terminal lost", "terminal", t.id, "error", err)
			return nil
		}
		switch f.Type {
		case wire.Message:
			if err := s.receive(ctx, t, f); err != nil {
				return err
			}
		case wire.File:
			if err := t.uploads.add(ctx, f); err != nil {
				return err
			}
		case wire.Fetch:
			s.fetch(ctx, t, f)
		case wire.Shown:
			s.hub.confirm(t, f.ID)
		}
	}
}

// receive passes a message to the kernel and acknowledges it. An error ends the
// connection, and the terminal reconnects and sends the message again.
func (s *server) receive(ctx context.Context, t *terminal, f wire.Frame) error {
	refusal := ""
	files, err := t.uploads.take(f.Files)
	switch {
	case err != nil && (isFinal(err) || errors.Is(err, errMissingFile)):
		refusal = err.Error()
	case err != nil:
		return fmt.Errorf("the kernel did not store a file: %w", err)
	case len(f.Text) > wire.MaxText:
		refusal = fmt.Sprintf("the message has %d bytes; the limit is %d", len(f.Text), wire.MaxText)
	case strings.TrimSpace(f.Text) == "" && len(files) == 0:
		refusal = "the message is empty"
	}
	if refusal == "" {
		f.Attachments = files
		s.hub.addArrival(t, f)
		err := s.kernel.Receive(ctx, contract.UserMessage{
			Text: f.Text, UserID: LocalUser, ConversationID: t.conversation, AgentID: t.agent,
			Language:  t.language,
			MessageID: f.ID, SentAt: time.Now().Unix(), Attachments: files,
		}, t.conversation+"/"+f.ID, s.files.keep(t.conversation, files)...)
		if err != nil {
			s.hub.removeArrival(f.ID)
		}
		switch {
		case err == nil:
			s.hub.echo(t, f)
			t.queue.put(wire.Frame{Type: wire.Accepted, ID: f.ID})
			if len(files) > 0 {
				s.removeOldFiles(ctx)
			}
			return nil
		case isFinal(err):
			refusal = err.Error()
		default:
			return fmt.Errorf("the kernel did not accept the message: %w", err)
		}
	}
	t.queue.put(wire.Frame{Type: wire.Error, ID: f.ID, Text: refusal})
	return nil
}

// isFinal reports whether sending the message again would not help.
func isFinal(err error) bool {
	return errors.Is(err, contract.ErrInvalid) || errors.Is(err, contract.ErrTooLarge) ||
		errors.Is(err, contract.ErrDenied) || errors.Is(err, contract.ErrFull)
}
