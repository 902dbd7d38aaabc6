package terminal

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// stub is a channel that the test controls.
type stub struct {
	t    *testing.T
	path string
	l    net.Listener
}

func newStub(t *testing.T) *stub {
	t.Helper()
	dir, err := os.MkdirTemp("", "chat") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &stub{t: t, path: filepath.Join(dir, wire.SocketName)}
	s.open()
	return s
}

func (s *stub) open() {
	s.t.Helper()
	l, err := net.Listen("unix", s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.l = l
	s.t.Cleanup(func() { _ = l.Close() })
}

// peer is one connection of a terminal.
type peer struct {
	t     *testing.T
	conn  *wire.Conn
	hello wire.Frame
}

// accept waits for a terminal and reads its hello.
func (s *stub) accept() *peer {
	s.t.Helper()
	c, err := s.l.Accept()
	if err != nil {
		s.t.Fatal(err)
	}
	p := &peer{t: s.t, conn: wire.NewConn(c, 10*time.Second)}
	s.t.Cleanup(func() { _ = c.Close() })
	p.hello = p.read()
	if p.hello.Type != wire.Hello {
		s.t.Fatalf("got %+v instead of hello", p.hello)
	}
	return p
}

// attach accepts a terminal and welcomes it.
func (s *stub) attach() *peer {
	s.t.Helper()
	p := s.accept()
	conversation := p.hello.Conversation
	if conversation == "" {
		conversation = wire.DefaultConversation
	}
	p.write(wire.Frame{Type: wire.Welcome, Version: wire.Version, Conversation: conversation, Text: "a test model"})
	return p
}

func (p *peer) read() wire.Frame {
	p.t.Helper()
	f, err := p.conn.Read()
	if err != nil {
		p.t.Fatal("read:", err)
	}
	return f
}

// expect reads a frame and checks its type.
func (p *peer) expect(want wire.Type) wire.Frame {
	p.t.Helper()
	f := p.read()
	if f.Type != want {
		p.t.Fatalf("got %+v, want %s", f, want)
	}
	return f
}

func (p *peer) write(f wire.Frame) {
	p.t.Helper()
	if err := p.conn.Write(f); err != nil {
		p.t.Fatal("write:", err)
	}
}

// answer accepts a message and answers it.
func (p *peer) answer(to wire.Frame, text string) {
	p.t.Helper()
	p.write(wire.Frame{Type: wire.Accepted, ID: to.ID})
	p.write(wire.Frame{Type: wire.Message, ID: "re-" + to.ID, ReplyTo: to.ID, Text: text})
	if f := p.expect(wire.Shown); f.ID != "re-"+to.ID {
		p.t.Fatalf("confirmed %q", f.ID)
	}
}
