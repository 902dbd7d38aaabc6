package terminal

import (
	"slices"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

func TestCompleted(t *testing.T) {
	t.Parallel()
	commands := []string{"new", "status", "stop", "schedules", "sethome"}
	const tab = string(tabRune)
	for line, want := range map[string]string{
		"/n" + tab: "/new ", "/sc" + tab: "/schedules ", "/st" + tab: "/st", "/sta" + tab: "/status ", "/" + tab: "/",
		"/x" + tab:         "/x",
		"/schedules" + tab: "/schedules ", "n" + tab: "", tab: "", "": "", "/new x" + tab: "", "/tmp/n" + tab: "", "/n": "",
	} {
		runes := []rune(line)
		got, choices, changed := complete(runes, len(runes), commands)
		if changed != (want != "") || string(got) != want {
			t.Errorf("%q becomes %q, %t, want %q", line, string(got), changed, want)
		}
		if fit := map[string][]string{"/st" + tab: {"status", "stop"}, "/" + tab: commands}[line]; !slices.Equal(choices,
			fit) {
			t.Errorf("%q can be %q, want %q", line, choices, fit)
		}
	}
	if _, _, changed := complete([]rune("/n"+tab+"ew"), 3, commands); changed {
		t.Error("a tab in the middle completes")
	}
}

func TestChatCompletesCommands(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.accept()
	p.write(wire.Frame{
		Type: wire.Welcome, Version: wire.Version, Conversation: wire.DefaultConversation, Text: "a test model",
		Commands: "new status stop schedules",
	})
	c.see("Switchboard · a test model", "", "›")
	c.press("/sc\tall\r")
	if m := p.expect(wire.Message); m.Text != "/schedules all" {
		t.Errorf("sent %q", m.Text)
	}
	p.write(wire.Frame{Type: wire.Accepted, ID: "x"})
	c.press("/s\tx a\tb\r")
	if m := p.expect(wire.Message); m.Text != "/sx a\tb" {
		t.Errorf("sent %q", m.Text)
	}
}

func TestATabShowsSeveralMatches(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.accept()
	p.write(wire.Frame{
		Type: wire.Welcome, Version: wire.Version, Conversation: wire.DefaultConversation, Text: "a test model",
		Commands: "new status stop schedules queue_remove task_cancel sethome memories remember",
	})
	c.see("Switchboard · a test model", "", "›")
	c.press("/\t")
	c.see("", "  /new /status /stop /schedules /queue_remove /task_cancel", "  /sethome /memories /remember", "› /")
	c.press("st\t")
	c.see("  /status /stop", "› /st")
	c.press("o\t\r")
	if m := p.expect(wire.Message); m.Text != "/stop" {
		t.Errorf("sent %q", m.Text)
	}
}
