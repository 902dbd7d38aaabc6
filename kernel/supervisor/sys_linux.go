package supervisor

import (
	"bytes"
	"errors"
	"iter"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the longest path of a unix socket.
const maxSocketPath = 107

// waitsForReaping says that awaitExit waits.
const waitsForReaping = true

// processAttributes put a process into a group of its own, so that it can be
// killed with what it started, and tie its life to the thread that starts it.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the process has exited and leaves it a zombie: until
// it is reaped, its process group cannot be anybody else's.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// children are the processes that a process is the parent of.
func children(pid int) (all []int) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return nil
	}
	for _, thread := range threads {
		data, err := os.ReadFile(tasks + "/" + thread.Name() + "/children")
		if err != nil {
			continue
		}
		for field := range bytes.FieldsSeq(data) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// adopt makes this process the parent of what its descendants leave behind.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// environments yields the environments of the user's processes.
func environments() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			environ, err := os.ReadFile("/proc/" + e.Name() + "/environ")
			if err == nil && !yield(pid, string(environ)) {
				return
			}
		}
	}
}
