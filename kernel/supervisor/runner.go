package supervisor

import (
	"cmp"
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
// open, and kills the whole group. Of the output, go-plugin gets the first line.
type groupRunner struct {
	cmd     *exec.Cmd
	spawner *spawner
	output  *output

	handshake *io.PipeReader // the first line of stdout
	hello     string         // likewise; set before handshake has it
	reading   sync.WaitGroup // of stdout and stderr

	alive  context.Context         // of the process
	cancel context.CancelCauseFunc // ends it
	ended  chan struct{}           // the last output has been read

	mu     sync.Mutex
	pid    int
	dead   bool
	killed string // the reason; empty: not killed
	exit   exit
}

var _ runner.Runner = (*groupRunner)(nil)

// Start starts the process.
func (r *groupRunner) Start(context.Context) error {
	stdout, err := r.cmd.StdoutPipe()
	stderr, errToo := r.cmd.StderrPipe()
	r.cmd.Err = cmp.Or(r.cmd.Err, err, errToo)
	if err := r.spawn(); err != nil {
		return explainStart(r.cmd, err)
	}
	handshake, first := io.Pipe()
	r.handshake = handshake
	r.reading.Go(func() {
		lines := scanLines(r.alive, stdout)
		if lines.Scan() {
			r.hello = lines.Text()
			if len(r.hello) < maxLine { // else go-plugin stops in the middle of it
				_, _ = fmt.Fprintln(first, r.hello)
			}
		}
		_ = first.Close()
		r.output.take("stdout", lines)
	})
	r.reading.Go(func() { r.output.take("stderr", scanLines(r.alive, stderr)) })
	go r.watch(stdout, stderr)
	return nil
}

func (r *groupRunner) spawn() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.killed != "" {
		r.cmd.Err = errors.New(r.killed)
	}
	err := r.spawner.Start(r.cmd)
	if err == nil {
		r.pid = r.cmd.Process.Pid
	}
	return err
}

// watch waits for the end of the process and of its output.
func (r *groupRunner) watch(stdout, stderr io.Closer) {
	awaitExit(r.pid)
	r.mu.Lock()
	if waitsForReaping {
		r.endGroup()
	}
	r.mu.Unlock()
	state, err := r.cmd.Process.Wait()
	r.mu.Lock()
	if !waitsForReaping {
		r.endGroup()
	}
	killed := r.killed
	r.mu.Unlock()

	clean := err == nil && state.Success()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signal() != syscall.SIGKILL {
		killed = "" // it ended before
	}
	reason := cmp.Or(killed, fmt.Sprintf("the process ended by itself (%s)", state))
	r.cancel(errors.New(reason)) // first: callers of the process wait for it

	timer := time.AfterFunc(drainGrace, func() { _, _ = stdout.Close(), stderr.Close() })
	r.reading.Wait()
	timer.Stop()
	_, _ = stdout.Close(), stderr.Close()

	r.spawner.Ended(r.pid)
	summary, full := r.output.last()
	if killed == "" && summary != "" && !clean {
		reason += ": " + summary
	}
	r.exit = exit{Clean: clean, Killed: killed != "", Reason: reason, Crash: full}
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
	r.killed = cmp.Or(r.killed, reason)
	if r.pid != 0 {
		_ = syscall.Kill(-r.pid, syscall.SIGKILL)
	}
}

// Wait returns when the process has exited and its output has been read.
func (r *groupRunner) Wait(context.Context) error {
	<-r.ended
	return nil
}

// Kill is called by go-plugin when a handshake fails, or a process does not exit.
func (r *groupRunner) Kill(context.Context) error {
	if r.hello == "" {
		r.kill("the process closed stdout without a handshake")
	} else {
		r.kill("the process did not exit when asked to")
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

func (r *groupRunner) Stdout() io.ReadCloser                            { return r.handshake }
func (r *groupRunner) Stderr() io.ReadCloser                            { return io.NopCloser(strings.NewReader("")) }
func (r *groupRunner) Name() string                                     { return r.cmd.Path }
func (r *groupRunner) Diagnose(context.Context) string                  { return "" }
func (r *groupRunner) PluginToHost(n, a string) (string, string, error) { return n, a, nil }
func (r *groupRunner) HostToPlugin(n, a string) (string, string, error) { return n, a, nil }

// explainStart adds the cause and the remedy to an error of exec.
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
		return errors.New("no command: set run.command")
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("the executable %q is not in PATH: install it, or give its path as run.command", path)
	case errors.Is(err, fs.ErrNotExist) && statErr == nil:
		return fmt.Errorf("%s exists, but its interpreter or loader does not: %w", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the executable %s does not exist: build it, or correct run.command", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s is not executable: chmod +x %[1]s", path)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s is not a program for this machine (is it built for another system, or a script without #!): %w",
			path, err)
	}
	return fmt.Errorf("start %s: %w", path, err)
}
