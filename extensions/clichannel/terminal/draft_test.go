package terminal

import (
	"testing"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// The answer replaces its own draft only; the answer to a command in between is
// shown above the draft.
func TestChatShowsTheDraftUntilItsOwnAnswerComes(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attach()
	c.press("a story\r")
	p.write(wire.Frame{Type: wire.Accepted, ID: p.expect(wire.Message).ID})
	p.write(wire.Frame{Type: wire.Draft, ID: "d1", Text: "Once upon"})
	c.see("› a story", "● Once upon", "›")
	p.write(wire.Frame{Type: wire.Message, ID: "m1", Text: "All is well."})
	p.expect(wire.Shown)
	c.see("› a story", "● All is well.", "", "● Once upon", "›")

	c.press("wait\r")
	p.write(wire.Frame{Type: wire.Accepted, ID: p.expect(wire.Message).ID})
	p.write(wire.Frame{Type: wire.Draft, ID: "d2", Text: "I am"})
	c.see("● All is well.", "", "› wait", "● I am", "›")
	p.write(wire.Frame{Type: wire.Draft, ID: "d1", Done: true}) // not the current draft
	p.write(wire.Frame{Type: wire.Message, ID: "m2", Draft: "d2", Text: "I am waiting."})
	p.expect(wire.Shown)
	c.see("› wait", "● I am waiting.", "", "›")

	p.write(wire.Frame{Type: wire.Draft, ID: "d1", Text: "Once upon a"})
	c.see("● I am waiting.", "", "● Once upon a", "›")
	p.write(wire.Frame{Type: wire.Message, ID: "m1", Text: "All is well."}) // again
	p.expect(wire.Shown)
	p.write(wire.Frame{Type: wire.Message, ID: "m3", Draft: "d1", Text: "Once upon a time."})
	p.expect(wire.Shown)
	c.see("● I am waiting.", "", "● Once upon a time.", "", "›")

	p.write(wire.Frame{Type: wire.Draft, ID: "d3", Text: "Well"})
	c.see("● Well", "›")
	p.write(wire.Frame{Type: wire.Draft, ID: "d3", Done: true})
	c.see("● Once upon a time.", "", "›")
}

// A terminal that loses its connection removes the draft.
func TestChatForgetsTheDraftWithTheConnection(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attach()
	p.write(wire.Frame{Type: wire.Draft, ID: "d1", Text: "Once upon"})
	c.see("● Once upon", "›")
	_ = c.l.Close()
	_ = p.conn.Close()
	c.see("Switchboard · a test model", "", "  not connected: your messages will be sent later", "›")
}
