package launch

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// endless is a stream without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestOutputIsReadAtAPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		l := newLines(ctx, func([]byte) {})
		read := func(n int64) time.Duration {
			begin := time.Now()
			if _, err := io.CopyN(l, endless{}, n); err != nil {
				t.Fatal(err)
			}
			return time.Since(begin).Round(time.Millisecond)
		}
		if took := read(outputBurst); took != 0 {
			t.Errorf("a burst takes %s", took)
		}
		if took := read(10 * outputRate); took != 10*time.Second {
			t.Errorf("ten seconds' worth take %s", took)
		}
		time.Sleep(time.Minute)
		if took := read(outputBurst); took != 0 {
			t.Errorf("after a pause a burst takes %s", took)
		}
		end()
		if took := read(100 * outputBurst); took != 0 {
			t.Errorf("the rest of a process that has ended takes %s", took)
		}
	})
}

func TestOutputIsSplitIntoLines(t *testing.T) {
	t.Parallel()
	var got []string
	l := newLines(t.Context(), func(line []byte) { got = append(got, string(line)) })
	full := strings.Repeat("x", maxLine)
	for _, part := range []string{"on", "e\n\ntwo\nth", "ree\n", full + "\n", full + full + "y\n", "the end"} {
		if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("wrote %d of %d bytes: %v", n, len(part), err)
		}
	}
	_ = l.Close()
	if want := []string{"one", "", "two", "three", full, full, full, "y", "the end"}; !slices.Equal(got, want) {
		t.Errorf("%.50q", got)
	}
	if n, err := l.Write([]byte("late\n")); n != 0 || err == nil {
		t.Errorf("wrote %d bytes after the end: %v", n, err)
	}
}
