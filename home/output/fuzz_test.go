package output

import (
	"bytes"
	"io"
	"testing"
	"unicode/utf8"
)

// FuzzOutput: whatever a process prints is logged for its extension, and what is
// kept of it for the reason of its end is bounded.
func FuzzOutput(f *testing.F) {
	for _, seed := range []string{
		"hello\n", `{"@level":"error","@message":"it broke","@module":"b.part","error":["x"]}` + "\n", "panic: oh\n\ngoroutine 1 [running]:\n",
		"{", `{"@message":null}`, `{"@message":{"@message":1},"@module":17}`, "\x00\xff\r\n\r\n", `{"@message":1,"@module":"a.b.c.`,
	} {
		f.Add("stderr", []byte(seed))
		f.Add("stdout", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream string, printed []byte) {
		logs := map[string]*bytes.Buffer{"a": {}, "b": {}}
		o := New([]string{"a", "b"}, func(id string) io.Writer { return logs[id] })
		lines := 0
		for line := range bytes.Lines(printed) {
			o.Line(stream, line)
			if len(bytes.TrimSpace(line)) > 0 {
				lines++
			}
		}
		if lines > 0 && logs["a"].Len()+logs["b"].Len() == 0 {
			t.Errorf("nothing of %q is logged", printed)
		}
		summary, full := o.Last()
		if !o.panics && len(o.tail) > keepTail || len(full) > maxCrash+len(printed)+keepTail ||
			utf8.Valid(printed) && !utf8.ValidString(summary) {
			t.Errorf("%d lines and %d bytes are kept, and %q", len(o.tail), len(full), summary)
		}
	})
}
