package e2e

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// A question is answered at the terminal by the number of a button, which counts once, also
// if the kernel is dead when it is typed. A number that is typed later is text.
func TestTerminalPressesActions(t *testing.T) {
	t.Parallel()
	w, p := guarded(t, byConfig, "")
	p.leave()
	c := w.console()
	w.model.Queue(openaitest.CallTool("lab__slow", `{"n": 1}`), openaitest.Say("It is done."))
	c.types("do it")
	c.sees("Chief wants to run lab/slow:")
	c.sees("1\x1b[0m Yes   ")
	c.sees("4\x1b[0m Always")
	w.settledBut("agent.input.chief")
	w.crash()
	c.sees("not connected")
	c.types("1")
	c.sees("waiting for the kernel")
	w.start()
	c.sees("It is done.")
	w.settled()
	if got := w.lines("lab", "calls"); len(got) != 1 {
		t.Errorf("the tool ran %d times", len(got))
	}
	w.model.Queue(openaitest.Say("One what?"))
	c.types("1")
	c.sees("One what?")
	if last := w.model.Requests()[w.model.Total()-1].Last("user"); !strings.HasSuffix(last, "1") {
		t.Errorf("the model got %q", last)
	}
	if strings.Contains(c.screen.String(), "/approve q1\n") {
		t.Errorf("the terminal names commands that it has numbers for:\n%s", c.screen)
	}
}
