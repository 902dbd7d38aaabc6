package supervisor

import (
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/kernel/sandbox"
)

// process is what the supervisor knows of a running process.
type process interface {
	PID() int
	Conn() grpc.ClientConnInterface
	// Context ends at the moment of the exit.
	Context() context.Context
	// Done is closed a little later, when the last output has been read.
	Done() <-chan struct{}
	// Exit tells how it ended; valid once Done is closed.
	Exit() exit
	// Kill ends the process group with SIGKILL. The first reason is kept.
	Kill(reason string)
	// Quit asks the process to end, and does not wait.
	Quit()
	// Release frees what belonged to a process that has ended.
	Release()
	// Sockets is the directory of its socket.
	Sockets() string
	// Conceal takes secrets out of what the process writes from now on, Clean out
	// of what it has said otherwise.
	Conceal(secrets iter.Seq[string])
	Clean(text string) string
}

// exit is how a process ended.
type exit struct {
	Clean  bool   // by itself, with status 0
	Killed bool   // by Kill
	Reason string // one line
	Crash  string // what it wrote at last; may have many lines
}

// launch is what a process is started with.
type launch struct {
	IDs      []string // the extensions it serves
	Command  []string
	Dir      string
	Serve    func(context.Context, net.Listener) error // instead of Command
	Env      []string
	AutoMTLS bool
	Policy   *sandbox.Policy // nil: no sandbox
	Confine  []string
	// Log takes a log line of one of the extensions.
	Log func(id string) io.Writer
}

// launcher starts a process and returns when it can be called. When ctx ends
// before, the process is killed and context.Cause is the error.
type launcher func(ctx context.Context, l launch) (process, error)

// permanent marks a failure that trying again cannot mend.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

func isPermanent(err error) bool {
	var p permanent
	return errors.As(err, &p) || errors.Is(err, sandbox.ErrNoRoom)
}

// crashed is a failure together with what the process wrote before it.
type crashed struct {
	error
	crash string
}

func (c crashed) Unwrap() error { return c.error }

// Times that bound what a process may hold up.
const (
	// quitGrace is the time to exit once everything in flight is finished.
	quitGrace = 2 * time.Second
	// drainGrace is the time after an exit in which its last output is read; a
	// process that left the group may hold the pipe open for longer.
	drainGrace = 200 * time.Millisecond
)
