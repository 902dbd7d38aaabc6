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
	maxGarbage   = 5
	// farewellTimeout is how long a stop waits for a terminal that does not read.
	farewellTimeout = 2 * time.Second
)

// terminal is one attached chat.
type terminal struct {
	conn         *wire.Conn
	id           string
	conversation string
	agent        string
	script       bool
	queue        *queue
	offered      *recent // messages given to it; the hub guards it
}

// wants reports whether a message with this address is for the terminal.
func (t *terminal) wants(conversation string) bool {
	if conversation == "" {
		return !t.script
	}
	return t.conversation == conversation
}

// serve is one connection from beginning to end.
func (s *server) serve(ctx context.Context, c *ownuser.Conn) {
	log := s.kernel.Log()
	conn := wire.NewConn(c, s.written)
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() { stop() }()
	t, err := s.greet(conn)
	if err != nil {
		log.Debug("a terminal did not introduce itself", "error", err)
		refuse(conn, err)
		return
	}
	t.queue.put(wire.Frame{
		Type: wire.Welcome, Version: wire.Version, Conversation: t.conversation,
		Text: s.config.Greeting, Hint: s.config.Hint, Commands: s.commands(ctx),
	})
	if !s.hub.attach(t) {
		refuse(conn, fmt.Errorf("%d terminals are attached, which is the most there can be: close one", maxTerminals))
		return
	}
	c.Known()
	log.Debug("terminal attached", "terminal", t.id, "conversation", t.conversation)
	if stop() {
		stop = context.AfterFunc(ctx, t.farewell)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		if err := t.write(); err != nil {
			log.Info("terminal detached", "terminal", t.id, "error", err)
		}
	}()
	err = s.read(ctx, t)
	s.hub.detach(t)
	if err != nil {
		t.queue.put(wire.Frame{Type: wire.Error, Text: err.Error(), Fatal: errors.Is(err, wire.ErrOversize)})
	}
	t.queue.close()
	<-written
}

// commands are the names that a terminal completes; none if the kernel does not
// tell them at once.
func (s *server) commands(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	all, err := s.kernel.Commands(ctx)
	if err != nil {
		s.kernel.Log().Debug("the commands are not known", "error", err)
	}
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.GetName()
	}
	return strings.Join(names, " ")
}

// refuse tells a terminal why it cannot attach.
func refuse(conn *wire.Conn, err error) {
	_ = conn.Write(wire.Frame{Type: wire.Error, Text: err.Error(), Fatal: true})
}

// greet reads the terminal's hello.
func (s *server) greet(conn *wire.Conn) (*terminal, error) {
	if err := conn.ReadWithin(s.hello); err != nil {
		return nil, err
	}
	f, err := conn.Read()
	switch {
	case err != nil:
		return nil, err
	case f.Type != wire.Hello:
		return nil, fmt.Errorf("%s instead of hello", f.Type)
	case f.Version != wire.Version:
		return nil, fmt.Errorf("the terminal speaks version %d of the chat protocol, the kernel version %d: use the same switchboard for both", f.Version, wire.Version)
	case s.token != "" && subtle.ConstantTimeCompare([]byte(s.token), []byte(f.Token)) != 1:
		return nil, fmt.Errorf("the terminal does not show what stands in %s: it is no terminal of the owner", wire.TokenName)
	}
	if err := conn.ReadWithin(0); err != nil {
		return nil, err
	}
	t := &terminal{
		conn: conn, id: f.Terminal, conversation: f.Conversation, agent: f.Agent, script: f.Script,
		queue: newQueue(), offered: newRecent(),
	}
	switch {
	case f.New:
		t.conversation = wire.NewID()
	case t.conversation == "":
		t.conversation = wire.DefaultConversation
	}
	return t, nil
}

// farewell ends the connection when the extension stops, once what is queued is
// written.
func (t *terminal) farewell() {
	t.queue.put(wire.Frame{Type: wire.State, Text: "the kernel is stopping"})
	t.queue.close()
	time.AfterFunc(farewellTimeout, func() { _ = t.conn.Close() })
}

// write writes what is queued until the queue ends; then nothing can be read
// from the terminal any more either.
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

// read handles what the terminal sends until it goes. An error is for the
// terminal to hear.
func (s *server) read(ctx context.Context, t *terminal) error {
	garbage := 0
	for {
		f, err := t.conn.Read()
		switch {
		case errors.Is(err, wire.ErrGarbage):
			if garbage++; garbage == maxGarbage {
				return fmt.Errorf("too much of this: %w", err)
			}
			t.queue.put(wire.Frame{Type: wire.Error, Text: err.Error()})
			continue
		case errors.Is(err, wire.ErrOversize):
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
		case wire.Shown:
			s.hub.confirm(t, f.ID)
		}
	}
}

// receive hands a message to the kernel and acknowledges it. An error ends the
// connection, and the terminal comes back with the message.
func (s *server) receive(ctx context.Context, t *terminal, f wire.Frame) error {
	refusal := ""
	switch {
	case len(f.Text) > wire.MaxText:
		refusal = fmt.Sprintf("the message has %d bytes, at most %d are possible", len(f.Text), wire.MaxText)
	case strings.TrimSpace(f.Text) == "":
		refusal = "the message is empty"
	}
	if refusal == "" {
		s.hub.arrive(t, f)
		err := s.kernel.Receive(ctx, contract.UserMessage{
			Text: f.Text, UserID: LocalUser, ConversationID: t.conversation, AgentID: t.agent,
			MessageID: f.ID, SentAt: time.Now().Unix(),
		}, t.conversation+"/"+f.ID)
		if err != nil {
			s.hub.left(f.ID)
		}
		switch {
		case err == nil:
			s.hub.echo(t, f)
			t.queue.put(wire.Frame{Type: wire.Accepted, ID: f.ID})
			return nil
		case isFinal(err):
			refusal = err.Error()
		default:
			return fmt.Errorf("the kernel did not take the message: %w", err)
		}
	}
	t.queue.put(wire.Frame{Type: wire.Error, ID: f.ID, Text: refusal})
	return nil
}

// isFinal reports whether the same message would be refused again, or whether
// people have to do something before it is not.
func isFinal(err error) bool {
	return errors.Is(err, contract.ErrInvalid) || errors.Is(err, contract.ErrTooLarge) ||
		errors.Is(err, contract.ErrDenied) || errors.Is(err, contract.ErrFull)
}
