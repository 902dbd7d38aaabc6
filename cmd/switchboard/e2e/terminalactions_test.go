package e2e

import (
	"strings"
	"testing"
	"time"

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

// scheduled is one line of `switchboard schedules list --json`.
type scheduled struct {
	ID, Kind, State, Message string
	Next                     *time.Time
}

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// A reminder is put off by its button and comes again, also if the kernel dies right after
// the press, which counts once. The old button says what became of it.
func TestReminderIsSnoozedAndDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	c := w.console("NO_COLOR=1")
	c.types("remind me in 1 second to drink tea")
	c.sees("⏰ drink tea")
	c.sees("1 Done   2 +10 min   3 Tomorrow morning")
	c.types("3")
	c.sees("  Tomorrow morning")
	w.restart()
	c.sees("OK, I'll remind you again tomorrow at 09:00.")
	c.sees("reconnected")
	c.types("/snooze r1.1 tomorrow")
	c.sees("This reminder was moved already, to ")
	w.settled()
	all := list[[]scheduled](w, "schedules", "list")
	if len(all) != 1 || all[0].State != "active" || all[0].Next == nil {
		t.Fatalf("the schedules are %+v", all)
	}
	if next := all[0].Next.In(berlin(t)).Format("15:04"); next != "09:00" {
		t.Errorf("it comes again at %s", next)
	}
	w.must("schedules", "cancel", "r1")
	c.types("remind me in 1 second to feed the cat")
	c.sees("⏰ feed the cat")
	c.types("1")
	c.sees("● Done.")
	c.types("/done r2.1")
	c.sees("This is done already.")
}
