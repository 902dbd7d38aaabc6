package terminal

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func screenOn(out io.Writer) *screen {
	s := newScreen(func() (int, int) { return 20, 10 })
	s.out = out
	return s
}

func TestScreenReplacesLiveLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := screenOn(&out)
	s.update([]string{"live", "two"})
	s.update([]string{"live", "two"}) // no change
	s.print("stays")
	s.update(nil)
	const up2 = "\x1b[2A\r\x1b[J\x1b[m"
	if got, want := out.String(), "live\ntwo\n"+up2+"stays\nlive\ntwo\n"+up2; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestScreenKnowsRowsOfANarrowerTerminal(t *testing.T) {
	t.Parallel()
	lines := []string{"\x1b[2m" + strings.Repeat("x", 25) + "\x1b[0m", "", strings.Repeat("你", 10)}
	if got := rowCount(lines, 20); got != 4 {
		t.Errorf("%d rows at 20", got)
	}
	if got := rowCount(lines, 10); got != 6 {
		t.Errorf("%d rows at 10", got)
	}
}

func TestScreenWaitsWhileTheLineEnds(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := screenOn(&out)
	s.update([]string{"live"})
	s.hold()
	s.print("later")
	if strings.Contains(out.String(), "later") {
		t.Fatal("written while the screen was held")
	}
	settled := make(chan error)
	go func() { settled <- s.waitWritten() }()
	s.release()
	if err := <-settled; err != nil || !strings.HasSuffix(out.String(), "later\nlive\n") {
		t.Errorf("got %q, %v", out.String(), err)
	}
	s.hold()
	s.close()
	s.print("too late")
	if err := s.waitWritten(); !errors.Is(err, errLeft) {
		t.Errorf("got %v: a message that is not on the screen must not be confirmed", err)
	}
}

func TestScreenWithFailingWrites(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	_ = r.Close()
	s := screenOn(w)
	s.print("x")
	if err := s.waitWritten(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}
