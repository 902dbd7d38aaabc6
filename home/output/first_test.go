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

// The line that names an exception says more than those around it.
func TestTheExceptionIsTheReason(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"SyntaxError: Unexpected identifier 'is'": "file:///x/main.js:51\nthis is wrong(\n     ^^\n" +
			"SyntaxError: Unexpected identifier 'is'\n    at load (node:internal:346:16)\n\nNode.js v20.20.2",
		"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'": "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'\n" +
			"    at y\n\nNode.js v20.20.2",
		"my.OwnError: no": "Traceback (most recent call last):\n  File \"main.py\", line 1\nmy.OwnError: no",
		"last":            "it said Error: no\nlast",
	} {
		o := New([]string{"one"}, func(string) io.Writer { return io.Discard })
		for line := range strings.SplitSeq(text, "\n") {
			o.Line("stderr", []byte(line))
		}
		if summary, _ := o.Last(); summary != want {
			t.Errorf("the reason is %q, want %q", summary, want)
		}
	}
}
