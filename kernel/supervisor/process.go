package supervisor

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/kernel/sandbox"
)

// process is a running process.
type process struct {
	pid     int // 0: the kernel's own
	conn    grpc.ClientConnInterface
	ctx     context.Context // ends at the moment of the exit
	done    chan struct{}   // closed a little later, when the last output has been read
	exit    exit            // valid once done is closed
	sockets string          // the directory of its socket
	output  Output

	// kill ends the process group with SIGKILL. The first reason is kept.
	kill func(reason string)
	// quit asks the process to end, and does not wait.
	quit func()
	// release frees what belonged to a process that has ended.
	release func()
}

// exit is how a process ended.
type exit struct {
	Clean  bool   // by itself, with status 0
	Killed bool   // by Kill
	Reason string // one line
	Crash  string // its last output; may have many lines
}

// launch is a process to start: IDs are the extensions that it serves, Spec is what
// they have together.
type launch struct {
	Spec
	IDs []string
}

// merge is the process that serves all the extensions; see Spec.Group.
func merge(specs map[string]Spec) (l launch) {
	for i, id := range sortedKeys(specs) {
		s := specs[id]
		l.IDs = append(l.IDs, s.ID)
		if i == 0 {
			l.Spec = s
			continue
		}
		l.Env = slices.Concat(s.Env, l.Env) // the last one of a name counts
		l.AutoMTLS = l.AutoMTLS || s.AutoMTLS
		l.StartTimeout, l.ShutdownGrace = max(l.StartTimeout, s.StartTimeout), max(l.ShutdownGrace, s.ShutdownGrace)
		l.Limits = sandbox.Limits{
			Memory:    addLimits(l.Limits.Memory, s.Limits.Memory),
			Processes: addLimits(l.Limits.Processes, s.Limits.Processes),
			Alone:     l.Limits.Alone && s.Limits.Alone,
			Rooms:     slices.Concat(l.Limits.Rooms, s.Limits.Rooms),
		}
		if l.Policy != nil && s.Policy != nil {
			l.Policy = sandbox.Union(l.Policy, s.Policy)
		} else {
			l.Policy = nil // one without a sandbox takes the others out of theirs
		}
	}
	return l
}

// addLimits adds limits, of which zero is no limit.
func addLimits[N int | int64](a, b N) N {
	if a == 0 || b == 0 {
		return 0
	}
	return a + b
}

// launcher starts a process and returns when it can be called. When ctx ends
// before, the process is killed and context.Cause is the error.
type launcher func(ctx context.Context, l launch) (*process, error)

// permanent marks a failure that a restart cannot fix.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

func isPermanent(err error) bool {
	var p permanent
	return errors.As(err, &p) || errors.Is(err, sandbox.ErrNoRoom)
}

// crashed is a failure with the last output of the process before it.
type crashed struct {
	error
	crash string
}

func (c crashed) Unwrap() error { return c.error }

const (
	// quitGrace is the time to exit once everything in flight is finished.
	quitGrace = 2 * time.Second
	// drainGrace is the time after an exit in which its last output is read; a
	// process that left the group may hold the pipe open for longer.
	drainGrace = 200 * time.Millisecond
)
