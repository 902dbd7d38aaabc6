//go:build !linux

package procfs

import (
	"context"
	"iter"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Children returns nothing: it is known on Linux only.
func Children(int) []int { return nil }

// Stopped returns false: it is known on Linux only.
func Stopped(int) bool { return false }

// Environments yields the pids and the environments of the user's processes, as far
// as ps shows them, after their commands.
func Environments() iter.Seq2[int, string] {
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
