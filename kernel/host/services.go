package host

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// The generated services.
type (
	busService      struct{ h *Host }
	sessionsService struct{ h *Host }
	toolsService    struct{ h *Host }
	modelsService   struct{ h *Host }
	channelsService struct{ h *Host }
	kvService       struct{ h *Host }
	runtimeService  struct{ h *Host }
)

func (s busService) Watch(r *kernelv1.WatchRequest, stream grpc.ServerStreamingServer[busv1.Event]) error {
	actor := actorOf(stream.Context())
	if len(r.GetTopics()) == 0 {
		return fmt.Errorf("%w: name the topics to watch", contract.ErrInvalid)
	}
	for _, pattern := range r.GetTopics() {
		if err := actor.MayWatch(pattern); err != nil {
			return err
		}
	}
	now := journal.EventFilter{After: bus.FromNow}
	return s.h.Bus.Events(stream.Context(), s.h.pacedView, now, true, func(e *busv1.Event) error {
		if slices.ContainsFunc(r.GetTopics(), func(pattern string) bool { return topic.Match(pattern, e.GetTopic()) }) {
			return stream.Send(e)
		}
		return nil
	})
}

// pacedView is Bus.View within the limits of the requests that read.
func (h *Host) pacedView(ctx context.Context, read func(journal.Reader) error) error {
	end, err := h.admission.begin(ctx, clientOf(ctx), kernelv1.Bus_Watch_FullMethodName)
	if err != nil {
		return err
	}
	defer end()
	return h.Bus.View(ctx, read)
}

// lease is the lease of a request's lane.
func (h *Host) lease(ctx context.Context, lane string) (*bus.Lease, error) {
	return h.Bus.Lease(actorOf(ctx), lane)
}

// view answers a request of the holder of a lane from the store.
func view[T any](ctx context.Context, h *Host, lane string, read func(journal.Reader, *bus.Lease, *T) error,
) (*T, error) {
	l, err := h.lease(ctx, lane)
	if err != nil {
		return nil, err
	}
	out := new(T)
	return out, h.Bus.View(ctx, func(j journal.Reader) error { return read(j, l, out) })
}

func (s sessionsService) Pending(ctx context.Context, r *kernelv1.PendingRequest) (*kernelv1.PendingResponse, error) {
	return view(ctx, s.h, r.GetLane(), func(j journal.Reader, l *bus.Lease, out *kernelv1.PendingResponse) error {
		inputs, err := s.h.Sessions.Pending(j, s.h.Bus, l)
		size := 0
		for _, e := range inputs {
			if size += proto.Size(e); size > contract.MaxMessage/2 && len(out.GetInputs()) > 0 {
				break // the next request gets the others
			}
			out.Inputs = append(out.Inputs, e)
		}
		return err
	})
}

func (s toolsService) List(ctx context.Context, r *kernelv1.ListToolsRequest) (*kernelv1.ListToolsResponse, error) {
	l, err := s.h.lease(ctx, r.GetLane())
	if err != nil {
		return nil, err
	}
	granted, etag := s.h.Tools.List(ctx, l.Agent)
	return &kernelv1.ListToolsResponse{Tools: granted, Etag: etag}, nil
}

func (s toolsService) Call(ctx context.Context, r *kernelv1.CallToolRequest) (*extensionv1.CallResult, error) {
	var l *bus.Lease
	if r.GetCallId() != "" || r.GetLane() != "" {
		var err error
		if l, err = s.h.lease(ctx, r.GetLane()); err != nil {
			return nil, err
		}
	}
	if r.GetCallId() == "" {
		return s.h.Tools.Ask(ctx, actorOf(ctx), l, r.GetName(), r.GetArguments())
	}
	result, err := s.h.Tools.Call(ctx, l, r.GetCallId())
	if err != nil {
		return nil, err
	}
	return &extensionv1.CallResult{
		Content: result.GetContent(), IsError: result.GetIsError(), Waiting: s.h.Bus.WaitingBehind(l),
	}, nil
}

func (s channelsService) List(context.Context, *kernelv1.ListChannelsRequest) (*kernelv1.ListChannelsResponse, error) {
	dir := s.h.Directory.Current()
	out := &kernelv1.ListChannelsResponse{Commands: command.Listed(dir.Commands)}
	for i := range dir.Channels {
		c := &dir.Channels[i]
		readiness := c.Readiness
		if c.State != contract.StateActive {
			readiness = &extensionv1.Readiness{State: extensionv1.Readiness_STATE_OFFLINE, Detail: "the extension is " + c.State}
		}
		out.Channels = append(out.Channels, &kernelv1.Channel{
			Id: c.ID, Name: c.Name, Readiness: readiness, MaxLength: int32(c.MaxLength), Formats: c.Formats, Drafts: c.Drafts,
			Default: c.ID == dir.DefaultChannel,
		})
	}
	return out, nil
}

func (s kvService) Get(ctx context.Context, r *kernelv1.GetRequest) (*kernelv1.Value, error) {
	out := &kernelv1.Value{Key: r.GetKey()}
	return out, s.h.Bus.View(ctx, func(j journal.Reader) error {
		v, err := j.KVGet(actorOf(ctx).ID, r.GetKey())
		out.Value, out.Version = v.Value, v.Version
		return err
	})
}

const (
	maxScan   = 1000
	scanChunk = 16 // values may be large: few are read at once
)

func (s kvService) Scan(ctx context.Context, r *kernelv1.ScanRequest) (*kernelv1.ScanResponse, error) {
	limit := int(r.GetLimit())
	if limit <= 0 || limit > maxScan {
		limit = maxScan
	}
	out := &kernelv1.ScanResponse{}
	return out, s.h.Bus.View(ctx, func(j journal.Reader) error {
		size := 0
		for v, err := range journal.Values(j, actorOf(ctx).ID, r.GetPrefix(), r.GetAfter(), scanChunk) {
			size += len(v.Key) + len(v.Value)
			switch {
			case err != nil:
				return err
			case len(out.GetValues()) == limit, size > contract.MaxMessage/2 && len(out.GetValues()) > 0:
				out.More = true
				return nil
			}
			out.Values = append(out.Values, &kernelv1.Value{Key: v.Key, Value: v.Value, Version: v.Version})
		}
		return nil
	})
}

func (s runtimeService) Report(ctx context.Context, r *extensionv1.Readiness) (*kernelv1.ReportResponse, error) {
	a := actorOf(ctx)
	return &kernelv1.ReportResponse{}, s.h.Report(a.ID, a.Generation, r)
}
