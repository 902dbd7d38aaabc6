package supervisor

import (
	"bytes"
	"errors"
	"fmt"
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

// residentMemory is the resident memory of a process in bytes.
func residentMemory(pid int) (int64, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, fmt.Errorf("reading the memory use of process %d: %w", pid, err)
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return 0, fmt.Errorf("reading the memory use of process %d: %q is not what /proc/<pid>/statm holds", pid, data)
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the memory use of process %d: %w", pid, err)
	}
	return pages * int64(os.Getpagesize()), nil
}

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
