package sdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// The gRPC services. Each passes a request to the extension that it names.
type (
	extensionService struct{ s *Server }
	eventsService    struct{ s *Server }
	toolsService     struct{ s *Server }
	modelsService    struct{ s *Server }
	draftsService    struct{ s *Server }
)

func (v extensionService) Describe(
	ctx context.Context, _ *extensionv1.DescribeRequest,
) (*extensionv1.Description, error) {
	x, err := v.s.instance(ctx)
	if err != nil {
		return nil, err
	}
	return x.described(), nil
}

func (v extensionService) Init(ctx context.Context, r *extensionv1.InitRequest) (*extensionv1.InitResponse, error) {
	x, err := v.s.instance(ctx)
	if err != nil {
		return nil, err
	}
	if v.s.onInit != nil {
		v.s.onInit()
	}
	lost := func() { v.s.kernelGone("connection of extension " + r.GetId() + " lost") }
	return x.init(ctx, r, lost) //nolint:contextcheck // lost outlives the request
}

func (v extensionService) Health(ctx context.Context, _ *extensionv1.HealthRequest) (*extensionv1.Readiness, error) {
	x, err := v.s.instance(ctx)
	if err != nil {
		return nil, err
	}
	return x.health(), nil
}

func (v extensionService) Shutdown(
	ctx context.Context, r *extensionv1.ShutdownRequest,
) (*extensionv1.ShutdownResponse, error) {
	x, err := v.s.instance(ctx)
	if err != nil {
		return nil, err
	}
	grace := time.Duration(r.GetGraceMs()) * time.Millisecond
	if grace <= 0 {
		grace = defaultGrace
	}
	x.shutdown(grace) //nolint:contextcheck // the grace bounds it, not the request
	v.s.closeIfIdle() //nolint:contextcheck // after the answer
	return &extensionv1.ShutdownResponse{}, nil
}

func (v eventsService) Deliver(stream deliverServer) error {
	a, err := v.s.activation(stream.Context())
	if err != nil {
		return err
	}
	return a.deliver(stream)
}

func (v toolsService) Call(ctx context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
	a, err := v.s.activation(ctx)
	if err != nil {
		return nil, err
	}
	ctx, leave, err := a.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return a.call(ctx, r)
}

func (v modelsService) Complete(
	r *extensionv1.CompleteRequest, stream grpc.ServerStreamingServer[extensionv1.Delta],
) error {
	a, err := v.s.activation(stream.Context())
	if err != nil {
		return asGone(err)
	}
	ctx, leave, err := a.enter(stream.Context())
	if err != nil {
		return asGone(err)
	}
	defer leave()
	return a.complete(ctx, r, stream.Send)
}

// asGone turns ErrUnavailable into ErrGone for a completion that came between two
// activations: it can be repeated, unlike one that the provider refuses.
func asGone(err error) error {
	if errors.Is(err, contract.ErrUnavailable) {
		return fmt.Errorf("%w: %v", contract.ErrGone, err) //nolint:errorlint // an error wraps one sentinel only
	}
	return err
}

func (v draftsService) Draft(stream draftServer) error {
	a, err := v.s.activation(stream.Context())
	if err != nil {
		return err
	}
	ctx, leave, err := a.enter(stream.Context())
	if err != nil {
		return err
	}
	defer leave()
	return a.draft(ctx, stream)
}
