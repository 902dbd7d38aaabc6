package launch

import "os/exec"

// Processes is what only the program around the kernel does with processes, for which
// it reads what the system says about them. It is safe for concurrent use.
type Processes interface {
	// Start starts a process of an extension. From then on, what its descendants leave
	// behind may be killed at any time. An error tells the owner what to do.
	Start(cmd *exec.Cmd) error
	// Sweep kills what processes of extensions have left behind, also outside of their
	// process groups. ended is one that was reaped just now; 0: none was.
	Sweep(ended int)
	// KillMarked kills the processes of this user, but for this one, whose environments
	// contain the mark, and returns their pids.
	KillMarked(mark string) []int
	// Stopped reports whether a signal has stopped a process, which then runs nothing.
	Stopped(pid int) bool
}
