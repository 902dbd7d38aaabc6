package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/internal/procfs"
)

// guardMargin is what the guard leaves to the kernel itself.
const guardMargin = 200 * time.Millisecond

// guard is the kernel's end of the guard.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

func startGuard(command []string) (*guard, error) {
	cmd := exec.CommandContext(context.Background(), command[0], command[1:]...) //nolint:gosec // this program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = []string{}
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the guard of the lease: %w", err)
	}
	return &guard{cmd, pipe}, nil
}

// arm sets the time at which the guard acts; zero: it does not.
func (g *guard) arm(until time.Time) {
	at := time.Duration(0)
	if !until.IsZero() {
		at = clock() + time.Until(until)
	}
	_, _ = g.pipe.Write(binary.BigEndian.AppendUint64(nil, uint64(at))) //nolint:gosec // read as it is written
}

func (g *guard) close() {
	_ = g.pipe.Close()
	_ = g.cmd.Wait()
}

// clock is one that all processes of the machine share, and that nothing sets.
func clock() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return time.Duration(t.Nano())
}

// Guard is the program of the guard: it reads from the kernel, its parent, until when the
// lease lasts, and kills the process groups of the kernel's other children when it has
// ended. It ends with the kernel.
func Guard(from io.Reader) {
	kernel := os.Getppid()
	renewals := make(chan time.Duration)
	go func() {
		defer close(renewals)
		for b := make([]byte, 8); ; {
			if _, err := io.ReadFull(from, b); err != nil {
				return
			}
			renewals <- time.Duration(binary.BigEndian.Uint64(b)) //nolint:gosec // as arm wrote it
		}
	}()
	var over <-chan time.Time
	for {
		select {
		case at, ok := <-renewals:
			if !ok {
				return
			}
			over = nil
			if at != 0 {
				over = time.After(at + guardMargin - clock())
			}
		case <-over:
			over = nil
			KillChildren(kernel)
		}
	}
}

// KillChildren kills the process groups of the children of a process, but for this
// process, and returns their pids.
func KillChildren(parent int) (killed []int) {
	for _, pid := range procfs.Children(parent) {
		if pid == os.Getpid() {
			continue
		}
		if err := syscall.Kill(-pid, syscall.SIGKILL); errors.Is(err, syscall.ESRCH) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		killed = append(killed, pid)
	}
	return killed
}

// EndChildren kills and reaps the children of this process, which nothing else waits for:
// those of the program that it was before.
func EndChildren() {
	for _, pid := range KillChildren(os.Getpid()) {
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	}
}
