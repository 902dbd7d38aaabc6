package terminal

import (
	"strings"
	"testing"

	"github.com/creack/pty"
)

// A line begins before the screen shows its first key, so that what the screen shows
// after the key can't count as seen before it.
func TestEditorBeginsALineBeforeItShowsTheFirstKey(t *testing.T) {
	t.Parallel()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminal here:", err)
	}
	defer master.Close()
	defer slave.Close()
	e, err := newEditor(Options{In: slave, Out: slave}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	var out strings.Builder // written and read by readLine
	e.out.to = &out
	e.setPrompt("> ")
	var shown []string // at the beginning of each line
	e.begun = func() { shown = append(shown, out.String()) }
	for _, want := range []string{"xy", "z"} {
		shown = nil
		out.Reset()
		if _, err := master.WriteString(want + "\r"); err != nil {
			t.Fatal(err)
		}
		line, err := e.readLine()
		if err != nil || line != want {
			t.Fatalf("read %q, %v", line, err)
		}
		e.screen.release()
		if len(shown) != 1 || !strings.Contains(shown[0], "> ") || strings.Contains(shown[0], want[:1]) {
			t.Errorf("%q began with the screen %q", want, shown)
		}
	}
}
