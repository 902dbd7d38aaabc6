package terminal

import (
	"os"
	"slices"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

func TestCompleted(t *testing.T) {
	t.Parallel()
	commands := []string{"new", "status", "stop", "schedules", "sethome"}
	all := []string{"/new", "/status", "/stop", "/schedules", "/sethome"}
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
		if fit := map[string][]string{"/st" + tab: {"/status", "/stop"}, "/" + tab: all}[line]; !slices.Equal(choices,
			fit) {
			t.Errorf("%q can be %q, want %q", line, choices, fit)
		}
	}
	if _, _, changed := complete([]rune("/n"+tab+"ew"), 3, commands); changed {
		t.Error("a tab in the middle completes")
	}
}

func TestPathsAreCompleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/"
	for _, name := range []string{"cat.jpg", "car.jpg", "my photo.jpg", ".hidden", "кот.jpg", "код.txt", "it's.txt"} {
		writeFile(t, dir+name, "x")
	}
	if err := os.Mkdir(dir+"pictures", 0o700); err != nil {
		t.Fatal(err)
	}
	const tab = string(tabRune)
	for line, want := range map[string]string{
		"/attach " + dir + "cat":      "/attach " + dir + "cat.jpg ",
		"/attach " + dir + "c":        "/attach " + dir + "ca",
		"/attach " + dir + "my":       "/attach " + dir + `my\ photo.jpg `,
		"/attach " + dir + `my\ p`:    "/attach " + dir + `my\ photo.jpg `,
		"/attach a.jpg " + dir + "pi": "/attach a.jpg " + dir + "pictures/",
		"/attach " + dir + "к":        "/attach " + dir + "ко",
		"/attach " + dir + "x":        "/attach " + dir + "x",
		"/attach " + dir + ".h":       "/attach " + dir + ".hidden ",
		"/save 3f2a9c " + dir + "pi":  "/save 3f2a9c " + dir + "pictures/",
		"/attach /nowhere/at/all":     "/attach /nowhere/at/all",
		"/attach " + dir + "it":       "/attach " + dir + "it",
	} {
		runes := []rune(line + tab)
		if got, _, changed := complete(runes, len(runes), nil); !changed || string(got) != want {
			t.Errorf("%q becomes %q, want %q", line, string(got), want)
		}
	}
	runes := []rune("/attach " + dir + "ca" + tab)
	if _, choices, _ := complete(runes, len(runes), nil); !slices.Equal(choices, []string{"car.jpg", "cat.jpg"}) {
		t.Errorf("the choices are %q", choices)
	}
	if _, _, changed := complete([]rune("/save 3f"+tab), 9, nil); changed {
		t.Error("a reference is completed as a path")
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
	c.see("", "  /new /status /stop /schedules /queue_remove /task_cancel", "  /sethome /memories /remember /attach /detach /save", "› /")
	c.press("st\t")
	c.see("  /status /stop", "› /st")
	c.press("o\t\r")
	if m := p.expect(wire.Message); m.Text != "/stop" {
		t.Errorf("sent %q", m.Text)
	}
}
