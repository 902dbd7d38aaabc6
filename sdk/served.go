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

// The generated services, each handing over to the extension a request is for.
type (
	extensionService struct {
		extensionv1.UnimplementedExtensionServer
		s *Server
	}
	eventsService struct {
		extensionv1.UnimplementedEventsServer
		s *Server
	}
	toolsService struct {
		extensionv1.UnimplementedToolsServer
		s *Server
	}
	modelsService struct {
		extensionv1.UnimplementedModelsServer
		s *Server
	}
	draftsService struct {
		extensionv1.UnimplementedDraftsServer
		s *Server
	}
)

func (v extensionService) Describe(ctx context.Context, _ *extensionv1.DescribeRequest) (*extensionv1.Description, error) {
	x, err := v.s.instance(ctx)
	if err != nil {
		return nil, err
	}
	return x.description, nil
}

func (v extensionService) Init(ctx context.Context, r *extensionv1.InitRequest) (*extensionv1.InitResponse, error) {
	x, err := v.s.instance(ctx)
	if err != nil {
		return nil, err
	}
	if v.s.began != nil {
		v.s.began()
	}
	return x.init(ctx, r, func() { v.s.gone("extension " + r.GetId()) }) //nolint:contextcheck // the kernel is gone: its request ends nothing
}

func (v extensionService) Health(ctx context.Context, _ *extensionv1.HealthRequest) (*extensionv1.Readiness, error) {
	x, err := v.s.instance(ctx)
	if err != nil {
		return nil, err
	}
	return x.health(), nil
}

func (v extensionService) Shutdown(ctx context.Context, r *extensionv1.ShutdownRequest) (*extensionv1.ShutdownResponse, error) {
	x, err := v.s.instance(ctx)
	if err != nil {
		return nil, err
	}
	grace := time.Duration(r.GetGraceMs()) * time.Millisecond
	if grace <= 0 {
		grace = defaultGrace
	}
	x.shutdown(grace) //nolint:contextcheck // the grace bounds it, not the request
	v.s.leave()       //nolint:contextcheck // after the answer
	return &extensionv1.ShutdownResponse{}, nil
}

func (v eventsService) Deliver(stream deliverServer) error {
	l, err := v.s.life(stream.Context())
	if err != nil {
		return err
	}
	return l.deliver(stream)
}

func (v toolsService) Call(ctx context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
	l, err := v.s.life(ctx)
	if err != nil {
		return nil, err
	}
	ctx, leave, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return l.call(ctx, r)
}

func (v modelsService) Complete(r *extensionv1.CompleteRequest, stream grpc.ServerStreamingServer[extensionv1.Delta]) error {
	l, err := v.s.life(stream.Context())
	if err != nil {
		return notHere(err)
	}
	ctx, leave, err := l.enter(stream.Context())
	if err != nil {
		return notHere(err)
	}
	defer leave()
	return l.complete(ctx, r, stream.Send)
}

// notHere is what a completion hears that came between two lives. Nothing of it
// was begun, so it can be made again, unlike one that the provider refuses.
func notHere(err error) error {
	if errors.Is(err, contract.ErrUnavailable) {
		return fmt.Errorf("%w: %v", contract.ErrGone, err) //nolint:errorlint // an error wraps one sentinel only
	}
	return err
}

func (v draftsService) Draft(stream grpc.ClientStreamingServer[extensionv1.DraftUpdate, extensionv1.DraftResponse]) error {
	l, err := v.s.life(stream.Context())
	if err != nil {
		return err
	}
	ctx, leave, err := l.enter(stream.Context())
	if err != nil {
		return err
	}
	defer leave()
	return l.draft(ctx, stream)
}
