package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

// groupRunner runs a command in its own process group, for go-plugin. In
// contrast to go-plugin's own runner it gives the process no stdin, notices the
// exit itself instead of the end of the output, which a grandchild can hold
// open, and kills the whole group.
type groupRunner struct {
	cmd     *exec.Cmd
	spawner *spawner
	output  *output
	stdout  *handshakeReader
	stderr  *teeReader

	alive  context.Context         // of the process
	cancel context.CancelCauseFunc // ends it
	ended  chan struct{}           // the last output has been read

	mu     sync.Mutex
	pid    int
	dead   bool
	killed string // why; empty: nobody killed it
	exit   exit
}

var _ runner.Runner = (*groupRunner)(nil)

// Start starts the process. go-plugin reads Stdout and Stderr from then on.
func (r *groupRunner) Start(context.Context) error {
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("a pipe for stdout: %w", err)
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("a pipe for stderr: %w", err), outRead.Close(), outWrite.Close())
	}
	r.cmd.Stdout, r.cmd.Stderr = outWrite, errWrite
	r.stdout = &handshakeReader{file: outRead, rest: r.output.stream("stdout"), done: make(chan struct{}), pace: pace{ctx: r.alive}}
	r.stderr = &teeReader{file: errRead, to: r.output.stream("stderr"), done: make(chan struct{}), pace: pace{ctx: r.alive}}

	r.mu.Lock()
	if r.killed != "" {
		err = errors.New(r.killed)
	} else {
		err = r.spawner.Start(r.cmd)
	}
	if err == nil {
		r.pid = r.cmd.Process.Pid
	}
	r.mu.Unlock()
	_, _ = outWrite.Close(), errWrite.Close()
	if err != nil {
		_, _ = outRead.Close(), errRead.Close()
		return explainStart(r.cmd, err)
	}
	go r.watch()
	return nil
}

// watch sees the process through to its end.
func (r *groupRunner) watch() {
	awaitExit(r.pid)
	r.mu.Lock()
	if waitsForReaping {
		r.endGroup()
	}
	r.mu.Unlock()
	err := r.cmd.Wait()
	r.mu.Lock()
	if !waitsForReaping {
		r.endGroup()
	}
	killed := r.killed
	r.mu.Unlock()

	status := "exit status 0"
	if err != nil {
		status = err.Error()
	}
	if state, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && state.Signal() != syscall.SIGKILL {
		killed = "" // it was faster
	}
	short := killed
	if short == "" {
		short = "the process ended by itself (" + status + ")"
	}
	r.cancel(errors.New(short)) // first: callers of the process wait for it

	// Both readers reach the end, unless go-plugin has stopped reading.
	deadline := time.Now().Add(drainGrace)
	_ = r.stdout.file.SetReadDeadline(deadline)
	_ = r.stderr.file.SetReadDeadline(deadline)
	for _, done := range []chan struct{}{r.stdout.done, r.stderr.done} {
		select {
		case <-done:
		case <-time.After(2 * drainGrace):
		}
	}
	_, _ = r.stdout.file.Close(), r.stderr.file.Close()

	r.spawner.Ended(r.pid)
	summary, full := r.output.last()
	if killed == "" && summary != "" && err != nil {
		short += ": " + summary
	}
	r.exit = exit{Clean: err == nil, Killed: killed != "", Reason: short, Crash: full}
	close(r.ended)
}

// endGroup kills the rest of the process group. Afterwards its number may belong to
// another group.
func (r *groupRunner) endGroup() {
	_ = syscall.Kill(-r.pid, syscall.SIGKILL)
	r.dead = true
}

// kill ends the process group, even before it starts.
func (r *groupRunner) kill(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead {
		return
	}
	if r.killed == "" {
		r.killed = reason
	}
	if r.pid != 0 {
		_ = syscall.Kill(-r.pid, syscall.SIGKILL)
	}
}

// Wait returns when the process has exited and its output has been read.
func (r *groupRunner) Wait(context.Context) error {
	<-r.ended
	return nil
}

// Kill is called by go-plugin when a handshake fails or a process stays after
// having been asked to end.
func (r *groupRunner) Kill(context.Context) error {
	if r.stdout.line() == "" {
		r.kill("it closed stdout without a handshake")
	} else {
		r.kill("it did not exit when asked to")
	}
	return nil
}

// ID is empty before the process has started: go-plugin has nothing to kill
// then.
func (r *groupRunner) ID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pid == 0 {
		return ""
	}
	return strconv.Itoa(r.pid)
}

func (r *groupRunner) Stdout() io.ReadCloser                            { return r.stdout }
func (r *groupRunner) Stderr() io.ReadCloser                            { return r.stderr }
func (r *groupRunner) Name() string                                     { return r.cmd.Path }
func (r *groupRunner) Diagnose(context.Context) string                  { return "" }
func (r *groupRunner) PluginToHost(n, a string) (string, string, error) { return n, a, nil }
func (r *groupRunner) HostToPlugin(n, a string) (string, string, error) { return n, a, nil }

// explainStart turns the error of exec into what to do about it.
func explainStart(cmd *exec.Cmd, err error) error {
	path := cmd.Path
	_, statErr := os.Stat(path)
	if cmd.Dir != "" {
		if info, dirErr := os.Stat(cmd.Dir); dirErr != nil || !info.IsDir() {
			return fmt.Errorf("start %s in %s: the directory does not exist: %w", path, cmd.Dir, err)
		}
	}
	switch {
	case path == "":
		return errors.New("there is no command: give one as run.command")
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("the executable %q is not in PATH: install it, or give its path as run.command", path)
	case errors.Is(err, fs.ErrNotExist) && statErr == nil:
		return fmt.Errorf("%s exists, but the interpreter or loader it asks for does not: %w", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the executable %s does not exist: build it, or correct run.command", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s is not executable: chmod +x %[1]s", path)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s is not a program for this machine (is it built for another system, or a script without #!): %w", path, err)
	}
	return fmt.Errorf("start %s: %w", path, err)
}

// teeReader copies what is read to a line writer.
type teeReader struct {
	file *os.File
	to   *lineWriter
	once sync.Once
	done chan struct{}
	pace pace
}

func (t *teeReader) Read(p []byte) (int, error) {
	n, err := t.file.Read(p)
	_, _ = t.to.Write(p[:n])
	t.pace.read(n)
	if err != nil {
		t.once.Do(func() { t.to.flush(); close(t.done) })
		return n, io.EOF
	}
	return n, nil
}

func (t *teeReader) Close() error { return nil }

// handshakeReader lets the first line through and diverts the rest: go-plugin's
// scanner would stop at a line of 64 KiB and leave the process blocked.
type handshakeReader struct {
	file *os.File
	rest *lineWriter
	once sync.Once
	done chan struct{}
	pace pace

	mu    sync.Mutex
	first []byte
	whole bool // the first line is complete
}

func (h *handshakeReader) Read(p []byte) (int, error) {
	for {
		n, err := h.file.Read(p)
		if err != nil {
			h.once.Do(func() { h.rest.flush(); close(h.done) })
			return 0, io.EOF
		}
		h.pace.read(n)
		if n = h.split(p[:n]); n > 0 {
			return n, nil
		}
	}
}

// split returns how much of p belongs to the first line, and keeps or diverts.
func (h *handshakeReader) split(p []byte) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.whole {
		_, _ = h.rest.Write(p)
		return 0
	}
	n := len(p)
	if i := bytes.IndexByte(p, '\n'); i >= 0 {
		h.whole, n = true, i+1
		_, _ = h.rest.Write(p[n:])
	}
	if room := keepLine - len(h.first); room > 0 {
		h.first = append(h.first, p[:min(n, room)]...)
	}
	return n
}

// line is the first line so far.
func (h *handshakeReader) line() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.TrimSpace(string(h.first))
}

func (h *handshakeReader) Close() error { return nil }
