package supervisor

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/sandbox"
)

// Spec says how one extension runs.
type Spec struct {
	ID   string
	Name string
	// Group lets extensions with the same Group, Command and Dir share one
	// process. Every request then names the extension it is for. The process
	// gets the union of their environments and sandboxes, the sum of their limits,
	// the longest of their timeouts, and the restart policy of the first by id.
	Group string
	// Command is the executable and its arguments. A path with a slash is
	// relative to Dir; a bare name is looked up in the kernel's PATH.
	Command []string
	Dir     string
	// Serve, in place of Command, serves the contract in this process: on the
	// listener, until ctx ends, when it has to return soon. It is called for each
	// start, and cannot share a process.
	Serve func(ctx context.Context, l net.Listener) error
	// Env is the complete environment.
	Env []string
	// StartTimeout is the time from exec until the extension is active,
	// ShutdownGrace the time to finish what is in flight. Zero: 10 s, 5 s.
	StartTimeout  time.Duration
	ShutdownGrace time.Duration
	// Limits bound the process and its descendants: above one, the process is killed,
	// and if a directory holds too much, not restarted until there is room.
	Limits sandbox.Limits
	// Policy is the sandbox of the process; nil: none. A shared process may do what
	// any of its members may. Confine is the command that applies the policy and then
	// executes Command; empty: the process applies it itself.
	Policy  *sandbox.Policy
	Confine []string
	Restart Restart
	// Requires are ids of extensions that must be active before this one starts.
	// One that fails for good or is removed stops this one too; one that is only
	// being restarted does not.
	Requires []string
	// AutoMTLS encrypts the connection. It is needed only by an extension that
	// listens on TCP, which is refused without it, and costs each start 14 to 37
	// ms.
	AutoMTLS bool
	// Fingerprint is a hash of all that the extension is started with (manifest,
	// configuration, secrets, executable). A new one swaps the process, or, in a
	// group that is otherwise unchanged, shuts the extension alone down and
	// initializes it again.
	Fingerprint string
	// Check refuses a description for good: it is not granted, or conflicts with
	// another extension. It must not wait for the Supervisor.
	Check func(*extensionv1.Description) error
	// Init builds the request for a start. It is called once for each
	// generation, and Gone follows for each. It must not wait for the Supervisor.
	Init func(generation int64) (*extensionv1.InitRequest, error)
}

// Policy says when a process that has ended is started again.
type Policy string

// Policies. The zero value is Always.
const (
	Always    Policy = "always"
	OnFailure Policy = "on-failure" // not after exit status 0
	Never     Policy = "never"
)

// Restart bounds how a failed extension is started again.
type Restart struct {
	Policy Policy
	// Backoff is the delay before the first repeat; each further one doubles it
	// up to MaxBackoff, with half of it as jitter in both directions. Zero: 1 s,
	// 2 min.
	Backoff    time.Duration
	MaxBackoff time.Duration
	// Max is the number of failures within Window that are followed by another
	// start; one more is final. Zero: 5 within 5 min. Negative: no limit.
	Max    int
	Window time.Duration
}

func (r Restart) withDefaults() Restart {
	r.Policy = cmp.Or(r.Policy, Always)
	r.Backoff = cmp.Or(r.Backoff, time.Second)
	r.MaxBackoff = max(cmp.Or(r.MaxBackoff, 2*time.Minute), r.Backoff)
	r.Max = cmp.Or(r.Max, 5)
	r.Window = cmp.Or(r.Window, 5*time.Minute)
	return r
}

func (s Spec) withDefaults() Spec {
	s.Name = cmp.Or(s.Name, s.ID)
	s.StartTimeout = cmp.Or(s.StartTimeout, 10*time.Second)
	s.ShutdownGrace = cmp.Or(s.ShutdownGrace, 5*time.Second)
	s.Restart = s.Restart.withDefaults()
	return s
}
