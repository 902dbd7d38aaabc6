package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// binary is this test binary under the name of the program, so that it can run
// itself again for the extensions.
func binary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "switchboard")
	if os.Link(self, to) == nil {
		return to
	}
	data, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(to, data, 0o700) //nolint:gosec // it is to be run
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// screen collects what a program writes to its terminal.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	return s.text.Write(b)
}

func (s *screen) await(t *testing.T, want string) {
	t.Helper()
	late := time.After(patience)
	for {
		s.mu.Lock()
		text := s.text.String()
		s.mu.Unlock()
		if strings.Contains(text, want) {
			return
		}
		select {
		case <-s.more:
		case <-late:
			t.Fatalf("%q did not appear in:\n%s", want, text)
		}
	}
}

// TestStartAndChatOnATerminal: what a new user sees, from the first line to the
// note on what is pending.
func TestStartAndChatOnATerminal(t *testing.T) {
	t.Parallel()
	home, err := os.MkdirTemp("/tmp", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	c := exec.CommandContext(t.Context(), binary(t))
	c.Env = []string{"SWITCHBOARD_HOME=" + home, "TERM=xterm", "NO_COLOR=1", "TZ=Europe/Berlin",
		"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	s := &screen{more: make(chan struct{}, 1)}
	go func() { _, _ = io.Copy(s, tty) }()
	s.await(t, "offline model: type help")
	typed := func(line string) {
		if _, err := tty.WriteString(line + "\r"); err != nil {
			t.Fatal(err)
		}
	}
	typed("remind me in 2 hours to water the plants")
	s.await(t, "OK, I'll remind you")
	typed("/quit")
	s.await(t, "One reminder is pending")
	s.await(t, "`switchboard run` keeps it running")
	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
