// Package slack sets a timer slack of one millisecond for a kernel and every process that it
// starts. Importing it is enough; it acts before other packages are initialized.
//
// While anything runs, the Go runtime checks every 20 µs whether a thread stays in a system
// call. For a single message that is a fifth of the processor time of all processes, more
// than a process that waits for its disk needs for its work. Nothing here needs timers more
// exact than a millisecond.
//
// Timer slack belongs to a thread, and new threads and processes inherit it; setting it for
// other threads needs privileges. So the process sets it for its first thread, and executes
// itself again. If that fails, the slack stays unchanged.
package slack

import (
	"os"
	"runtime"
	"syscall"
)

const (
	setTimerSlack = 29 // PR_SET_TIMERSLACK
	getTimerSlack = 30 // PR_GET_TIMERSLACK
	wanted        = 1_000_000
	// again is set after the process has executed itself.
	again = "SWITCHBOARD_SLACK_SET"
)

func init() { //nolint:gochecknoinits // before other packages do work twice
	if _, done := os.LookupEnv(again); done {
		_ = os.Unsetenv(again)
		return
	}
	if !startsKernel(os.Args) {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, getTimerSlack, 0, 0)
	if failed != 0 || before >= wanted {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	if _, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, wanted, 0); failed == 0 {
		_ = syscall.Exec(self, os.Args, append(os.Environ(), again+"=1"))
	}
}

// startsKernel reports whether a command line may start a kernel.
func startsKernel(args []string) bool {
	return len(args) == 1 || len(args) > 1 && (args[1] == "run" || args[1] == "chat")
}
