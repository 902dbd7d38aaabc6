package supervisor

import (
	"context"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// phase is the state of a unit's process.
type phase int

const (
	idle      phase = iota // no process
	launching              // exec, handshake, connection
	running
	quitting // asked to end, or about to be killed
)

// unit is one process: the extensions that share it now, and the next ones.
// All fields are guarded by Supervisor.mu.
type unit struct {
	key     string
	members map[string]*member
	wanted  map[string]Spec // its extensions by the last Apply; empty: it ends
	restart bool            // the process ends and starts again
	started Launch          // what the process was started with

	phase    phase
	proc     *Process
	abort    context.CancelCauseFunc // of the launch
	deadline time.Time               // for the members that start with the process

	recovery recovery // from the process's own failures
}

// process is the process that serves the members.
func (u *unit) process() Launch {
	specs := make(map[string]Spec, len(u.members))
	for id, m := range u.members {
		specs[id] = m.spec
	}
	return merge(specs)
}

// resetFailures forgets all failures of the process and of its extensions.
func (u *unit) resetFailures() {
	u.recovery.reset()
	for _, m := range u.members {
		m.recovery.reset()
	}
}

// memberState is the part of a process in the state of an extension.
type memberState int

const (
	down     memberState = iota
	starting             // is described and initialized
	doomed               // likewise, in a process that ends
	active
	stopping // shuts down, in a process that continues
)

// member is one extension. Guarded by Supervisor.mu.
type member struct {
	id   string
	spec Spec
	unit *unit // whose process it is in or waits for; nil: none yet

	state      memberState
	instance   *Instance // while it is active or stopping
	generation int64     // of the last start
	announced  int64     // generation that Init was asked for and that is not gone
	leaving    int       // calls of Gone that have not returned

	// recovery from failures of this extension alone; the unit's own if it
	// does not share its process.
	recovery *recovery

	readiness   *extensionv1.Readiness
	starts      int
	lastError   string
	lastErrorAt time.Time
	crash       string

	shown Status
}

// changing reports whether the member waits for an answer of the extension.
func (m *member) changing() bool {
	return m.state == starting || m.state == doomed || m.state == stopping
}

// groupKey is equal for extensions that share a process.
func groupKey(s Spec) string {
	if s.Group == "" {
		return "extension " + s.ID
	}
	return "group " + strings.Join(append([]string{s.Group, s.Dir}, s.Command...), "\x00")
}
