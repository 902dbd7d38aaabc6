package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// process is a running process as ps shows it.
type process struct {
	pid, parent int
	command     string
}

func (p process) String() string { return fmt.Sprintf("%d %s", p.pid, p.command) }

// processes lists what runs; zombies do not.
func processes(t *testing.T) []process {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,args=").Output()
	if err != nil {
		t.Fatalf("listing processes: %v", err)
	}
	var all []process
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 || strings.HasPrefix(f[2], "Z") {
			continue
		}
		pid, _ := strconv.Atoi(f[0])
		parent, _ := strconv.Atoi(f[1])
		all = append(all, process{pid, parent, strings.Join(f[3:], " ")})
	}
	return all
}

// descendants are the processes below one.
func descendants(t *testing.T, of int) []process {
	t.Helper()
	all := processes(t)
	var found []process
	for parents := []int{of}; len(parents) > 0; {
		var next []int
		for _, p := range all {
			if slices.Contains(parents, p.parent) {
				found, next = append(found, p), append(next, p.pid)
			}
		}
		parents = next
	}
	return found
}

// extensionProcess waits for the process that serves an extension, and returns
// it. Marks are parts of its command line.
func (w *world) extensionProcess(mark string) process {
	w.t.Helper()
	var found process
	w.eventually("a process of "+mark, func() bool {
		for _, p := range descendants(w.t, w.kernel.pid()) {
			if strings.Contains(p.command, mark) {
				found = p
				return true
			}
		}
		return false
	})
	return found
}

func kill(p process, with syscall.Signal) { _ = syscall.Kill(p.pid, with) }

// gone waits until none of the processes is left. A number that the system has
// given to another program does not count.
func (w *world) gone(were []process) {
	w.t.Helper()
	var left []process
	ok := w.waitFor(func() bool {
		left = slices.DeleteFunc(processes(w.t), func(p process) bool {
			return !slices.ContainsFunc(were, func(was process) bool { return was.pid == p.pid && was.command == p.command })
		})
		return len(left) == 0
	})
	if !ok {
		w.t.Errorf("processes are left: %v", left)
	}
	for _, p := range left {
		kill(p, syscall.SIGKILL)
	}
}
