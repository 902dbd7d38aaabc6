package support

import (
	"bytes"
	"os"
	"runtime"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filtered are the processors with a filter of system calls.
var filtered = []string{"amd64", "arm64"}

func detect() (s System) {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno == 0 {
		s.Landlock = int(abi)
	}
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0,
		uintptr(unsafe.Pointer(&action))) //nolint:gosec // the system call takes a pointer
	s.Seccomp = errno == 0 && slices.Contains(filtered, runtime.GOARCH)
	return s
}

// Confirmed reports whether a running process is in a sandbox: it can never gain
// privileges again, which is a condition of both means and comes with them.
func Confirmed(pid int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return err == nil && bytes.Contains(status, []byte("\nNoNewPrivs:\t1\n"))
}
