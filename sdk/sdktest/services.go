package sdktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// The kernel's services over a Kernel's state.
type (
	busService struct {
		kernelv1.UnimplementedBusServer
		k *Kernel
	}
	kvService struct {
		kernelv1.UnimplementedKVServer
		k *Kernel
	}
	sessionsService struct {
		kernelv1.UnimplementedSessionsServer
		k *Kernel
	}
	toolsService struct {
		kernelv1.UnimplementedToolsServer
		k *Kernel
	}
	modelsService struct {
		kernelv1.UnimplementedModelsServer
		k *Kernel
	}
	channelsService struct {
		kernelv1.UnimplementedChannelsServer
		k *Kernel
	}
	runtimeService struct {
		kernelv1.UnimplementedRuntimeServer
		k *Kernel
	}
)

// newKernelServer serves one connection's worth of services: whoever has the
// token is the extension.
func newKernelServer(k *Kernel, token string) *grpc.Server {
	admit := func(ctx context.Context) error {
		if given := metadata.ValueFromIncomingContext(ctx, contract.TokenHeader); len(given) != 1 || given[0] != token {
			return fmt.Errorf("the token of Init is missing in %s: %w", contract.TokenHeader, contract.ErrDenied)
		}
		return nil
	}
	s := grpc.NewServer(
		grpc.MaxRecvMsgSize(contract.MaxMessage), grpc.MaxSendMsgSize(contract.MaxMessage),
		grpc.UnaryInterceptor(func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if err := admit(ctx); err != nil {
				return nil, contract.ToStatus(err)
			}
			reply, err := handler(ctx, r)
			return reply, contract.ToStatus(err)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if err := admit(stream.Context()); err != nil {
				return contract.ToStatus(err)
			}
			return contract.ToStatus(handler(srv, stream))
		}),
	)
	kernelv1.RegisterBusServer(s, busService{k: k})
	kernelv1.RegisterKVServer(s, kvService{k: k})
	kernelv1.RegisterSessionsServer(s, sessionsService{k: k})
	kernelv1.RegisterToolsServer(s, toolsService{k: k})
	kernelv1.RegisterModelsServer(s, modelsService{k: k})
	kernelv1.RegisterChannelsServer(s, channelsService{k: k})
	kernelv1.RegisterRuntimeServer(s, runtimeService{k: k})
	return s
}

func (v busService) Commit(stream grpc.BidiStreamingServer[kernelv1.CommitFrame, kernelv1.ReceiptFrame]) error {
	for {
		frame, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		receipts := &kernelv1.ReceiptFrame{}
		for _, c := range frame.GetCommits() {
			receipts.Receipts = append(receipts.Receipts, v.k.commit(c))
		}
		if err := stream.Send(receipts); err != nil {
			return err
		}
	}
}

// watchBuffer is the number of events that a watcher may be behind.
const watchBuffer = 1024

func (v busService) Watch(r *kernelv1.WatchRequest, stream grpc.ServerStreamingServer[busv1.Event]) error {
	events := make(chan *busv1.Event, watchBuffer)
	s := v.k.state
	s.mu.Lock()
	s.watchers[events] = r.GetTopics()
	s.notify()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, events)
		s.mu.Unlock()
	}()
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case e := <-events:
			if err := stream.Send(e); err != nil {
				return err
			}
		}
	}
}

func (v kvService) Get(_ context.Context, r *kernelv1.GetRequest) (*kernelv1.Value, error) {
	s := v.k.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if value := s.kv[r.GetKey()]; value != nil {
		return value, nil
	}
	return &kernelv1.Value{Key: r.GetKey()}, nil
}

func (v kvService) Scan(_ context.Context, r *kernelv1.ScanRequest) (*kernelv1.ScanResponse, error) {
	s := v.k.state
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &kernelv1.ScanResponse{}
	for key, value := range s.kv {
		if strings.HasPrefix(key, r.GetPrefix()) && key > r.GetAfter() {
			out.Values = append(out.Values, value)
		}
	}
	slices.SortFunc(out.GetValues(), func(a, b *kernelv1.Value) int { return cmp.Compare(a.GetKey(), b.GetKey()) })
	limit := int(r.GetLimit())
	if limit <= 0 || limit > 1000 {
		limit = 1000
	}
	if len(out.GetValues()) > limit {
		out.Values, out.More = out.GetValues()[:limit], true
	}
	return out, nil
}

func (v sessionsService) Get(_ context.Context, r *kernelv1.SessionRequest) (*kernelv1.Session, error) {
	s := v.k.state
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.sessions[r.GetSession()]
	for _, one := range s.sessions {
		if r.GetKey() != "" && one.info.GetAgent() == r.GetAgent() && one.info.GetKey() == r.GetKey() {
			found = one
		}
	}
	if found == nil {
		return nil, fmt.Errorf("session %q: %w", r.GetSession(), contract.ErrNotFound)
	}
	return found.current(), nil
}

func (s *session) current() *kernelv1.Session {
	info := proto.CloneOf(s.info)
	info.HistorySeq = int64(len(s.entries))
	return info
}

func (v sessionsService) List(_ context.Context, r *kernelv1.ListSessionsRequest) (*kernelv1.ListSessionsResponse, error) {
	s := v.k.state
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &kernelv1.ListSessionsResponse{}
	for _, found := range s.sessions {
		if r.GetAgent() == "" || r.GetAgent() == found.info.GetAgent() {
			out.Sessions = append(out.Sessions, found.current())
		}
	}
	slices.SortFunc(out.GetSessions(), func(a, b *kernelv1.Session) int { return cmp.Compare(a.GetId(), b.GetId()) })
	if n := int(r.GetLimit()); n > 0 && n < len(out.GetSessions()) {
		out.Sessions = out.GetSessions()[:n]
	}
	return out, nil
}

func (v sessionsService) History(_ context.Context, r *kernelv1.HistoryRequest) (*kernelv1.HistoryResponse, error) {
	s := v.k.state
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.sessions[r.GetSession()]
	if found == nil {
		return nil, fmt.Errorf("session %q: %w", r.GetSession(), contract.ErrNotFound)
	}
	out := &kernelv1.HistoryResponse{}
	for _, e := range found.entries {
		if e.GetSeq() > r.GetAfterSeq() {
			out.Entries = append(out.Entries, proto.CloneOf(e))
		}
	}
	return out, nil
}

func (v sessionsService) Pending(context.Context, *kernelv1.PendingRequest) (*kernelv1.PendingResponse, error) {
	s := v.k.state
	s.mu.Lock()
	defer s.mu.Unlock()
	return &kernelv1.PendingResponse{Inputs: slices.Clone(s.pending)}, nil
}

func (v toolsService) List(context.Context, *kernelv1.ListToolsRequest) (*kernelv1.ListToolsResponse, error) {
	v.k.script.mu.Lock()
	defer v.k.script.mu.Unlock()
	return &kernelv1.ListToolsResponse{Tools: v.k.script.tools, Etag: fmt.Sprint(len(v.k.script.tools))}, nil
}

func (v toolsService) Call(ctx context.Context, r *kernelv1.CallToolRequest) (*extensionv1.CallResult, error) {
	return v.k.callScripted(ctx, r)
}

func (v modelsService) Complete(r *kernelv1.CompleteRequest, stream grpc.ServerStreamingServer[extensionv1.Delta]) error {
	v.k.script.mu.Lock()
	model := v.k.script.model
	v.k.script.mu.Unlock()
	if model == nil {
		return fmt.Errorf("no model is scripted: %w", contract.ErrUnavailable)
	}
	deltas, err := model(r)
	for _, d := range deltas {
		if err := stream.Send(d); err != nil {
			return err
		}
	}
	return err
}

func (v channelsService) List(context.Context, *kernelv1.ListChannelsRequest) (*kernelv1.ListChannelsResponse, error) {
	s := v.k.state
	s.mu.Lock()
	defer s.mu.Unlock()
	return &kernelv1.ListChannelsResponse{Channels: slices.Clone(s.channels), Commands: slices.Clone(s.commands)}, nil
}

func (v channelsService) Draft(stream grpc.ClientStreamingServer[kernelv1.DraftRequest, kernelv1.DraftResponse]) error {
	for {
		d, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&kernelv1.DraftResponse{})
		}
		if err != nil {
			return err
		}
		s := v.k.state
		s.mu.Lock()
		s.drafts = append(s.drafts, d.GetText())
		s.notify()
		s.mu.Unlock()
	}
}

func (v runtimeService) Report(_ context.Context, r *extensionv1.Readiness) (*kernelv1.ReportResponse, error) {
	v.k.state.report(r)
	return &kernelv1.ReportResponse{}, nil
}

// reported is how often the extension has said something of its readiness.
func (s *state) reported() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.reports)
}

func (s *state) report(r *extensionv1.Readiness) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, r)
	s.notify()
}
