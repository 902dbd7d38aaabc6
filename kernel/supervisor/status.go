package supervisor

import (
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// State is where an extension is in its life.
type State string

// States of an extension.
const (
	Inactive   State = contract.StateInactive // does not run, and nothing is wrong with it
	Starting   State = contract.StateStarting
	Active     State = contract.StateActive
	BackingOff State = contract.StateBackingOff // failed, and will be started again
	Failed     State = contract.StateFailed     // stays down until Restart or another Spec
	Stopping   State = contract.StateStopping
)

// Status describes an extension.
type Status struct {
	ID    string
	Name  string
	State State
	// Between says why an extension is inactive for a moment only: Starting if it
	// waits for others or for its former process, Stopping if the kernel is stopping.
	// Empty: it stays inactive.
	Between State
	// Detail says why an extension is not active.
	Detail string
	Since  time.Time // of the state
	// RetryAt is when an extension that is backing off starts again.
	RetryAt time.Time
	// Readiness is what an active extension reports: whether it can do its work.
	Readiness       extensionv1.Readiness_State
	ReadinessDetail string
	PID             int
	Generation      int64 // of the present start, or of the last one
	Restarts        int   // starts that followed a failure
	// LastError is the last failure in one line, Crash the output of the process
	// before it: a panic with its stack, or the last lines.
	LastError   string
	LastErrorAt time.Time
	Crash       string
}

// Observer receives the events of extensions. No lock is held: it may call the
// Supervisor. Calls for one id never overlap.
type Observer interface {
	// Active: the extension is described and initialised. Its streams can be
	// opened; its process may be gone again already, then Gone comes next.
	Active(*Instance)
	// Gone: the generation is over, whether or not it became active. The process
	// is dead, or, in a group that runs on, the extension has answered Shutdown;
	// its Instance is invalid. The next start waits for the return.
	Gone(id string, generation int64, reason string)
	// Changed: state, readiness or error have changed.
	Changed(Status)
}
