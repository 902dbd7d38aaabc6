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

// typewriter is a command on a terminal.
type typewriter struct {
	*screen
	t   *testing.T
	tty *os.File
	c   *exec.Cmd
}

func onPTY(t *testing.T, home, program string, args ...string) *typewriter {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env = []string{"SWITCHBOARD_HOME=" + home, "TERM=xterm", "NO_COLOR=1", "TZ=Europe/Berlin",
		"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	w := &typewriter{screen: &screen{more: make(chan struct{}, 1)}, t: t, tty: tty, c: c}
	t.Cleanup(func() { _ = tty.Close() })
	go func() { _, _ = io.Copy(w.screen, tty) }()
	return w
}

// answers types a line when a question is shown, and returns the exit status.
func (w *typewriter) answers(question, line string) int {
	w.t.Helper()
	if question != "" {
		w.await(w.t, question)
		if _, err := w.tty.WriteString(line + "\r"); err != nil {
			w.t.Fatal(err)
		}
	}
	_ = w.c.Wait()
	return w.c.ProcessState.ExitCode()
}

// A person on a terminal sees what an extension asks for before it is allowed, and nothing is
// allowed without their yes.
func TestConsentOnATerminal(t *testing.T) {
	t.Parallel()
	program, source := binary(t), filepath.Join(t.TempDir(), "jotter")
	home, err := os.MkdirTemp("/tmp", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	const manifest = "api: 1\nid: jotter\nname: Jotter\nversion: 1.0.0\nrun: {command: ./run}\nprovides: {tools: true}\n"
	for name, text := range map[string]string{"manifest.yaml": manifest, "run": "#!/bin/sh\nexec sleep 60\n"} {
		if err := os.MkdirAll(source, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
			t.Fatal(err)
		}
	}
	const asks = "give tools to agents"
	allowed := func() bool {
		c := exec.CommandContext(t.Context(), program, "extensions", "show", "jotter", "--json")
		c.Env = []string{"SWITCHBOARD_HOME=" + home, "PATH=" + os.Getenv("PATH"), "HOME=" + home}
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(out), `"decision": "allowed"`)
	}
	for _, step := range []struct {
		args           []string
		question, line string
		status         int
		allowed        bool
	}{
		{[]string{"install", source}, "[N]o", "", 0, false},
		{[]string{"allow", "jotter"}, "Allow it? [y/N]", "", 1, false},
		{[]string{"allow", "jotter"}, "Allow it? [y/N]", "no", 1, false},
		{[]string{"allow", "jotter"}, "Allow it? [y/N]", "y", 0, true},
		{[]string{"remove", "--yes", "jotter"}, "", "", 0, false},
		{[]string{"install", source}, "[N]o", "y", 0, true},
		{[]string{"remove", "--yes", "jotter"}, "", "", 0, false},
		{[]string{"install", "--yes", source}, "", "", 0, false},
		{[]string{"allow", "--yes", "jotter"}, "", "", 0, true},
	} {
		w := onPTY(t, home, program, append([]string{"extensions"}, step.args...)...)
		if step.question != "" {
			w.await(t, asks)
		}
		if status := w.answers(step.question, step.line); status != step.status {
			w.mu.Lock()
			t.Fatalf("%q: exit status %d, want %d:\n%s", step.args, status, step.status, w.text.String())
		}
		if step.args[0] != "remove" && allowed() != step.allowed {
			t.Fatalf("%q, answered %q: allowed is %t", step.args, step.line, !step.allowed)
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
