//go:build !linux

package supervisor

import (
	"context"
	"fmt"
	"iter"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// maxSocketPath is the longest path of a unix socket on the BSDs and macOS.
const maxSocketPath = 103

// waitsForReaping says that awaitExit waits.
const waitsForReaping = false

// processAttributes put a process into a group of its own, so that it can be
// killed with what it started.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitExit leaves the waiting to the one who reaps.
func awaitExit(int) {}

// usageOf is what a process uses; those below it are not seen.
func usageOf(pid int, _ bool) (usage, error) {
	memory, err := residentMemory(pid)
	return usage{Memory: memory, Processes: 1}, err
}

// hiddenOf is not known.
func hiddenOf(int) hidden { return hidden{} }

// children are not seen.
func children(int) []int { return nil }

// adopt does nothing: what has left its process group escapes.
func adopt() error { return nil }

// residentMemory is the resident memory of a process in bytes.
func residentMemory(pid int) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, fmt.Errorf("reading the memory use of process %d with ps: %w", pid, err)
	}
	kib, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the memory use of process %d with ps: %w", pid, err)
	}
	return kib << 10, nil
}

// environments yields the environments of the user's processes, as far as ps
// shows them, behind their commands.
func environments() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, "ps", "-x", "-E", "-ww", "-o", "pid=,command=").Output()
		if err != nil {
			return
		}
		for line := range strings.Lines(string(out)) {
			number, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			if pid, err := strconv.Atoi(number); err == nil && !yield(pid, rest) {
				return
			}
		}
	}
}
