// Package slack lets the timers of a kernel, and of every process that it
// starts, be a millisecond late. It has to be imported, and does the rest by
// itself, before other packages have prepared anything.
//
// The runtime of Go looks every 20 µs whether a thread stays in a system call,
// as long as anything runs at all. A process that waits for its disk, or wakes for
// a moment, spends more on that than on what it is there for: of a message that
// comes alone, a fifth of the processor time of all processes. Nothing here needs
// a timer to be more exact than a millisecond.
//
// The slack of timers belongs to a thread and goes over to the threads and
// processes that it makes; that of others cannot be set without privilege. So the
// process sets that of the thread it began with, and executes itself again. What
// cannot be set stays as it is.
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
	// again says that the process has executed itself.
	again = "SWITCHBOARD_SLACK_SET"
)

func init() { //nolint:gochecknoinits // before anything that would have to be done twice
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
