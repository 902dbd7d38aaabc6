//go:build !linux

package supervisor

import (
	"context"
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

// children are not seen.
func children(int) []int { return nil }

// adopt does nothing: what has left its process group escapes.
func adopt() error { return nil }

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
