package supervisor

import (
	"context"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// Instance is one generation of an extension that is active.
type Instance struct {
	ID         string
	Generation int64
	// Conn carries requests to this extension and no other, also where several
	// share a process. It is closed by the supervisor.
	Conn        grpc.ClientConnInterface
	Description *extensionv1.Description
	PID         int

	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Context ends when the process is gone; context.Cause wraps contract.ErrGone
// and says why.
func (i *Instance) Context() context.Context { return i.ctx }
