package output

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// The reason is at the beginning of what a failing program prints, more often than at its
// end.
func TestFirstLinesAreKept(t *testing.T) {
	t.Parallel()
	o := New([]string{"one"}, func(string) io.Writer { return io.Discard })
	for n := range 100 {
		o.Line("stderr", fmt.Appendf(nil, "line %d", n))
	}
	summary, full := o.Last()
	lines := strings.Split(full, "\n")
	if len(lines) != keepHead+1+keepTail || lines[0] != "line 0" || lines[keepHead] != "…" || summary != "line 99" {
		t.Errorf("%q, %q", summary, full)
	}
}
