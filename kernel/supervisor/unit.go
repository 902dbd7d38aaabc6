package supervisor

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/sandbox"
)

// phase is the state of a unit's process.
type phase int

const (
	idle      phase = iota // no process
	launching              // exec, handshake, connection
	running
	quitting // asked to end, or about to be killed
)

// unit is one process: the extensions that share it now, and those that will.
// All fields are guarded by Supervisor.mu.
type unit struct {
	key     string
	members map[string]*member
	pending map[string]Spec // its extensions after the process has ended; nil: no change
	restart bool            // the process ends and starts again

	phase    phase
	proc     process
	abort    context.CancelCauseFunc // of the launch
	deadline time.Time               // for the members that start with the process

	recovery recovery // from the process's own failures
}

// leaving reports whether the process has to end.
func (u *unit) leaving() bool { return u.pending != nil || u.restart }

// member is one extension. Guarded by Supervisor.mu.
type member struct {
	id   string
	spec Spec
	next *Spec // its spec after it has stopped, in the same process
	unit *unit // the one whose process it is in or waits for; nil: none yet

	booting    bool // part of the process that is launching
	starting   bool // described and initialised right now
	doomed     bool // starting, but the process ends
	stopping   bool // asked to shut down, in a process that runs on
	instance   *Instance
	generation int64 // of the last start
	announced  int64 // generation that Init was asked for and that is not gone
	leaving    int   // calls of Gone that have not returned

	// recovery from failures of this extension alone; the unit's own if it
	// does not share its process.
	recovery *recovery

	readiness   *extensionv1.Readiness
	readinessNo int // counts reports
	starts      int
	lastError   string
	lastErrorAt time.Time
	crash       string

	shown Status
}

// up says that the process serves this extension in some way.
func (m *member) up() bool { return m.instance != nil || m.starting || m.booting || m.stopping }

// groupKey is equal for extensions that share a process.
func groupKey(s Spec) string {
	if s.Group == "" {
		return "extension " + s.ID
	}
	return "group " + strings.Join(append([]string{s.Group, s.Dir}, s.Command...), "\x00")
}

// launchOf is what the process is started with that serves a unit's members.
func (s *Supervisor) launchOf(u *unit) launch {
	l := launch{Log: s.options.LogSink}
	for _, id := range sortedKeys(u.members) {
		spec := u.members[id].spec
		l.IDs = append(l.IDs, id)
		l.Command, l.Dir, l.Serve = spec.Command, spec.Dir, spec.Serve
		l.Env = mergeEnv(l.Env, spec.Env)
		l.AutoMTLS = l.AutoMTLS || spec.AutoMTLS
		l.Confine = spec.Confine
	}
	l.Policy = policyOf(u.specs())
	return l
}

// specs are those of the members, in the order of their ids.
func (u *unit) specs() (all []Spec) {
	for _, id := range sortedKeys(u.members) {
		all = append(all, u.members[id].spec)
	}
	return all
}

// policyOf is the sandbox of a process that several share: one that is in none
// takes the others out of theirs.
func policyOf(specs []Spec) (p *sandbox.Policy) {
	for i, s := range specs {
		switch {
		case s.Policy == nil:
			return nil
		case i == 0:
			p = s.Policy
		default:
			p = sandbox.Union(p, s.Policy)
		}
	}
	return p
}

// bounds are the limits of a process.
type bounds struct {
	sandbox.Limits
	start, grace time.Duration
	restart      Restart
}

func (u *unit) bounds() bounds {
	l := bounds{Limits: sandbox.Limits{Alone: true}}
	unlimited, unbounded := false, false
	for _, spec := range u.specs() {
		l.start, l.grace = max(l.start, spec.StartTimeout), max(l.grace, spec.ShutdownGrace)
		l.Memory += spec.Memory
		unlimited = unlimited || spec.Memory == 0
		l.Processes += spec.Processes
		unbounded = unbounded || spec.Processes == 0
		l.Alone = l.Alone && spec.Alone
		l.restart = cmp.Or(l.restart, spec.Restart)
		for _, dir := range []string{spec.DataDir, spec.RunDir} {
			l.Rooms = append(l.Rooms, sandbox.Room{ID: spec.ID, Dir: dir, Bytes: max(0, spec.Disk)})
		}
	}
	if unlimited {
		l.Memory = 0
	}
	if unbounded {
		l.Processes = 0
	}
	return l
}
