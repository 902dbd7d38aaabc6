package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// owner waits until the command line of a node reaches the owner, and returns the owner's
// home.
func (w *world) owner() (home string) {
	w.t.Helper()
	w.eventually("an owner that the command line reaches", func() bool {
		out, _, code := w.cli("status", "--json")
		var status struct{ Home string }
		home = ""
		if code == 0 && json.Unmarshal([]byte(out), &status) == nil {
			home = status.Home
		}
		return home != ""
	})
	return home
}

// The command line of each node reaches the owner, also after a takeover.
func TestTheCommandLineOfEachNodeReachesTheOwner(t *testing.T) {
	t.Parallel()
	_, all := serving(t, "a", "b")
	a, b := all[0], all[1]
	token := a.ask(1)
	a.hears(token)
	if got := b.owner(); got != a.home {
		t.Fatalf("the standby's command line reaches %q, not %q", got, a.home)
	}
	for _, args := range [][]string{
		{"status"}, {"sessions", "list"}, {"events", "tail"}, {"extensions", "list"}, {"models", "list"},
		{"people", "list"},
	} {
		b.eventually(fmt.Sprintf("the same %v as on the owner", args), func() bool { // also while something changes
			return b.must(args...) == a.must(args...) || args[0] == "status"
		})
	}
	if out := b.chatOnce("hear <c1>"); !strings.Contains(out, "<c1>") {
		t.Errorf("a chat on the standby: %q", out)
	}
	before := b.text("control.token")
	if before != a.text("control.token") {
		t.Error("the standby does not have the owner's token")
	}
	a.crash()
	b.eventually("the standby to take over", func() bool { return b.owner() == b.home })
	a.standsBy()
	a.eventually("the other owner", func() bool { return a.owner() == b.home })
	if a.text("control.token") != b.text("control.token") || b.text("control.token") == before {
		t.Error("the token is not the new owner's")
	}
	if out := a.chatOnce("hear <c2>"); !strings.Contains(out, "<c2>") {
		t.Errorf("a chat on the new standby: %q", out)
	}
	b.crash()
	a.eventually("this node to own the cell again", func() bool { return a.owner() == a.home })
	b.launch()
	b.eventually("a refusal or the owner", func() bool { return b.owner() == a.home })
}

// chatOnce says one line in a chat and returns what was answered.
func (w *world) chatOnce(line string) string {
	w.t.Helper()
	cmd := w.command("chat")
	cmd.Stdin = strings.NewReader(line + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Errorf("chat: %v: %s", err, out)
	}
	return string(out)
}
