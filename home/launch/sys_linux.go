package launch

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the longest path of a unix socket.
const maxSocketPath = 107

// processAttributes put a process into a group of its own, so that it can be
// killed with what it started, and tie its life to the thread that starts it.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the process has exited and leaves it a zombie: until
// it is reaped, no other process group gets its number.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
