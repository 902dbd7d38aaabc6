package supervisor

import (
	"context"
	"iter"
	"slices"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/sandbox"
)

// Launcher starts the process of extensions and returns when it can be called. When
// ctx ends before, the process is killed and context.Cause is the error. A Failure
// says more than another error. It is safe for concurrent use.
type Launcher func(ctx context.Context, l Launch) (*Process, error)

// Launch is a process to start: IDs are the extensions that it serves, Spec is what
// they have together.
type Launch struct {
	Spec
	IDs []string
}

// Process is a running process. Its functions are safe for concurrent use.
type Process struct {
	PID     int // 0: the kernel's own
	Conn    grpc.ClientConnInterface
	Context context.Context // ends at the moment of the exit; the cause is a GoneError
	Done    chan struct{}   // closed a little later, when the last output has been read
	Exit    Exit            // valid once Done is closed
	Sockets string          // the directory of its socket
	Output  Output

	// Stopped reports whether a signal has stopped the process, which then runs nothing.
	Stopped func() bool
	// Kill ends the process group with SIGKILL. The first reason is kept.
	Kill func(reason string)
	// Quit asks the process to end, and does not wait.
	Quit func()
	// Release frees what belonged to a process that has ended.
	Release func()
}

// Output is what a process writes. It is safe for concurrent use.
type Output interface {
	// Conceal redacts secrets from now on, in all that is kept of the output.
	Conceal(secrets iter.Seq[string])
	// Clean returns a text with these secrets redacted.
	Clean(text string) string
}

// Exit is how a process ended.
type Exit struct {
	Clean  bool   // by itself, with status 0
	Killed bool   // by Kill
	Reason string // one line
	Crash  string // its last output; may have many lines
}

// Failure is why an extension did not start, or ended.
type Failure struct {
	Err       error
	Permanent bool   // a restart cannot fix it
	Crash     string // the last output of the process before it
}

func (f Failure) Error() string { return f.Err.Error() }
func (f Failure) Unwrap() error { return f.Err }

// GoneError is why the context of a process or of an Instance ended.
type GoneError struct{ Reason error }

func (e GoneError) Error() string   { return e.Reason.Error() }
func (e GoneError) Unwrap() []error { return []error{contract.ErrGone, e.Reason} }

// merge is the process that serves all the extensions; see Spec.Group.
func merge(specs map[string]Spec) (l Launch) {
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
		l.Limits = l.Limits.Add(s.Limits)
		if l.Policy != nil && s.Policy != nil {
			l.Policy = sandbox.Union(l.Policy, s.Policy)
		} else {
			l.Policy = nil // one without a sandbox takes the others out of theirs
		}
	}
	return l
}
