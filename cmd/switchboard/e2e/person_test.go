package e2e

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// person sits at a terminal: what is sent there is seen, and confirmed.
type person struct {
	w    *world
	conn *wire.Conn

	mu     sync.Mutex
	frames []wire.Frame
	seen   map[string]bool
	closed bool
}

func (w *world) dial() (net.Conn, error) { return net.Dial("unix", w.file("run", wire.SocketName)) }

// terminalToken is what shows that a terminal is the owner's.
func (w *world) terminalToken() string {
	return strings.TrimSpace(w.text("data", "cli_channel", wire.TokenName))
}

// attach opens a terminal; hello says what it asks for.
func (w *world) attach(hello ...wire.Frame) *person {
	w.t.Helper()
	first := wire.Frame{}
	if len(hello) > 0 {
		first = hello[0]
	}
	first.Type, first.Version, first.Terminal = wire.Hello, wire.Version, wire.NewID()
	var p *person
	w.eventually("a terminal", func() bool {
		c, err := w.dial()
		if err != nil {
			return false
		}
		first.Token = w.terminalToken()
		p = &person{w: w, conn: wire.NewConn(c, patience), seen: map[string]bool{}}
		if p.conn.Write(first) == nil {
			if f, err := p.conn.Read(); err == nil && f.Type == wire.Welcome {
				return true
			}
		}
		p.leave()
		return false
	})
	w.t.Cleanup(p.leave)
	go p.read()
	return p
}

func (p *person) leave() { _ = p.conn.Close() }

func (p *person) read() {
	for {
		f, err := p.conn.Read()
		if err != nil {
			p.mu.Lock()
			p.closed = true
			p.mu.Unlock()
			return
		}
		if f.Type == wire.Message { // first: who is done once it is seen may close the terminal
			_ = p.conn.Write(wire.Frame{Type: wire.Shown, ID: f.ID})
		}
		p.mu.Lock()
		if f.Type != wire.Message || !p.seen[f.ID] {
			p.frames = append(p.frames, f)
		}
		p.seen[f.ID] = true
		p.mu.Unlock()
	}
}

// got returns the frames of a type so far.
func (p *person) got(kind wire.Type) []wire.Frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.frames), func(f wire.Frame) bool { return f.Type != kind })
}

// texts are the messages shown so far.
func (p *person) texts() []string {
	var out []string
	for _, f := range p.got(wire.Message) {
		out = append(out, f.Text)
	}
	return out
}

// say sends a message and returns when it is accepted.
func (p *person) say(text string) {
	p.w.t.Helper()
	id := wire.NewID()
	if err := p.conn.Write(wire.Frame{Type: wire.Message, ID: id, Text: text}); err != nil {
		p.w.t.Fatalf("saying %q: %v", text, err)
	}
	p.w.eventually(fmt.Sprintf("the acceptance of %q", text), func() bool {
		return slices.ContainsFunc(p.got(wire.Accepted), func(f wire.Frame) bool { return f.ID == id })
	})
}

// hears waits for the nth message at the terminal.
func (p *person) hears(n int) string {
	p.w.t.Helper()
	if !p.w.waitFor(func() bool { return len(p.texts()) >= n }) {
		p.w.t.Fatalf("the terminal has not shown message %d; it has: %q", n, p.texts())
	}
	return p.texts()[n-1]
}

// ask says something and waits for the next message.
func (p *person) ask(text string) string {
	p.w.t.Helper()
	n := len(p.texts())
	p.say(text)
	return p.hears(n + 1)
}

// hearsLike waits for a message that contains the text.
func (p *person) hearsLike(text string) string {
	p.w.t.Helper()
	var found string
	if !p.w.waitFor(func() bool {
		for _, m := range p.texts() {
			if strings.Contains(m, text) {
				found = m
				return true
			}
		}
		return false
	}) {
		p.w.t.Fatalf("the terminal has not shown %q; it has: %q", text, p.texts())
	}
	return found
}
