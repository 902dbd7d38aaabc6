package tasks

import (
	"strings"
	"testing"
)

func TestValidName(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "7", "task-1", "Größe_2.b", "исследование", "٣", strings.Repeat("я", 64)} {
		if !validName(good) {
			t.Errorf("%q is no name", good)
		}
	}
	for _, bad := range []string{"", "-a", ".a", "_", "a b", "a/b", "a\n", "a\xff", "\ufffd", "e\u0301",
		strings.Repeat("я", 65)} {
		if validName(bad) {
			t.Errorf("%q is a name", bad)
		}
	}
}
