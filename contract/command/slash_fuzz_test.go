package command

import (
	"strings"
	"testing"
)

// A command keeps all that stands behind its name, and nothing else is one.
func FuzzCommand(f *testing.F) {
	for _, seed := range []string{"/push do it", "/new", "/home/anna", "/ x", "//", "/x\ny", " /Stop", "/run\t3", "/x\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, rest, ok := Parse(text)
		trimmed := strings.TrimSpace(text)
		switch {
		case ok && strings.TrimSpace(strings.TrimPrefix(trimmed, "/"+name)) != rest:
			t.Errorf("%q is /%s with %q", text, name, rest)
		case ok && !strings.HasPrefix(trimmed, "/"+name), !ok && name+rest != "":
			t.Errorf("%q is %q with %q, %v", text, name, rest, ok)
		}
	})
}
