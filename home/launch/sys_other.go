//go:build !linux

package launch

import "syscall"

// maxSocketPath is the longest path of a unix socket on the BSDs and macOS.
const maxSocketPath = 103

// processAttributes put a process into a group of its own, so that it can be
// killed with what it started.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitExit cannot wait: the process is waited for when it is reaped.
func awaitExit(int) bool { return false }
