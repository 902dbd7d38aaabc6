package supervisor

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/switchboard-run/switchboard/contract"
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

// addressed names the extension in the metadata of every request.
type addressed struct {
	grpc.ClientConnInterface
	id string
}

func (c addressed) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	ctx = metadata.AppendToOutgoingContext(ctx, contract.ExtensionHeader, c.id)
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

func (c addressed) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, contract.ExtensionHeader, c.id)
	return c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
}
