package rules

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/topic"
)

// server serves the kernel's services on a socket of its own, as one run of a kernel does.
type server struct {
	grpc    *grpc.Server
	dir     string
	address string
}

// serve begins a run of the played kernel.
func (k *player) serve(dir string) (*server, error) {
	dir, err := os.MkdirTemp(dir, "k")
	if err != nil {
		return nil, fmt.Errorf("create a directory for the kernel's socket: %w", err)
	}
	path := filepath.Join(dir, "k")
	l, err := net.Listen("unix", path) //nolint:noctx // it does not block
	if err != nil {
		return nil, fmt.Errorf("listen as the kernel: %w", err)
	}
	s := &server{dir: dir, address: "unix:" + path, grpc: grpc.NewServer(
		grpc.MaxRecvMsgSize(contract.MaxMessage), grpc.MaxSendMsgSize(contract.MaxMessage),
		grpc.UnaryInterceptor(k.unary), grpc.StreamInterceptor(k.stream),
	)}
	x := services{k: k}
	kernelv1.RegisterBusServer(s.grpc, x)
	kernelv1.RegisterSessionsServer(s.grpc, sessions{services: x})
	kernelv1.RegisterToolsServer(s.grpc, tools{services: x})
	kernelv1.RegisterModelsServer(s.grpc, models{services: x})
	kernelv1.RegisterChannelsServer(s.grpc, channels{services: x})
	kernelv1.RegisterKVServer(s.grpc, values{services: x})
	kernelv1.RegisterBlobsServer(s.grpc, blobs{services: x})
	kernelv1.RegisterRuntimeServer(s.grpc, runtime{services: x})
	go func() { _ = s.grpc.Serve(l) }()
	return s, nil
}

func (k *player) unary(ctx context.Context, r any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := k.admit(info.FullMethod, tokenOf(ctx)); err != nil {
		return nil, contract.ToStatus(err)
	}
	reply, err := next(ctx, r)
	return reply, contract.ToStatus(err)
}

func (k *player) stream(v any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := k.admit(info.FullMethod, tokenOf(stream.Context())); err != nil {
		return contract.ToStatus(err)
	}
	return contract.ToStatus(next(v, stream))
}

func (s *server) stop() {
	s.grpc.Stop()
	_ = os.RemoveAll(s.dir)
}

func tokenOf(ctx context.Context) string {
	return strings.Join(metadata.ValueFromIncomingContext(ctx, contract.TokenHeader), ",")
}

// services are those of the kernel.
type services struct {
	kernelv1.UnimplementedBusServer
	k *player
}

// denied notes a request that the manifest does not grant.
func (x services) denied(what, lacks string) error {
	err := fmt.Errorf("%w: %s, but the manifest lacks %q", contract.ErrDenied, what, lacks)
	x.k.note("grants", err.Error())
	return err
}

// lane checks the lane token of a request. A request that its sender cancels may come after
// the answer that the cancelled handler gave, because that has another connection.
func (x services) lane(ctx context.Context, what, lane string) error {
	if x.k.over(lane) {
		notice := time.NewTimer(cancelNotice)
		defer notice.Stop()
		select {
		case <-ctx.Done():
			return contract.ErrStale
		case <-notice.C:
		}
	}
	return x.k.lane(what, lane)
}

// cancelNotice is how long after a request its cancellation may come.
const cancelNotice = 500 * time.Millisecond

// Commit implements kernelv1.BusServer.
func (x services) Commit(stream kernelv1.Bus_CommitServer) error {
	for {
		frame, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		answer := &kernelv1.ReceiptFrame{}
		for _, c := range frame.GetCommits() {
			answer.Receipts = append(answer.Receipts, x.k.commit(c))
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

// Watch implements kernelv1.BusServer.
func (x services) Watch(r *kernelv1.WatchRequest, stream kernelv1.Bus_WatchServer) error {
	for _, pattern := range r.GetTopics() {
		covers := func(s string) bool { return topic.Covers(s, pattern) }
		var subscribed []string
		for _, s := range x.k.spec.Permissions.Subscribe {
			subscribed = append(subscribed, s.Pattern)
		}
		if !slices.ContainsFunc(subscribed, covers) {
			return x.denied("it watches "+pattern, "permissions: {subscribe: ["+pattern+"]}")
		}
	}
	<-stream.Context().Done()
	return nil
}

type sessions struct {
	kernelv1.UnimplementedSessionsServer
	services
}

// Get implements kernelv1.SessionsServer.
func (x sessions) Get(ctx context.Context, r *kernelv1.SessionRequest) (*kernelv1.Session, error) {
	if err := x.lane(ctx, "Sessions.Get", r.GetLane()); err != nil {
		return nil, err
	}
	agent := cmp.Or(r.GetAgent(), x.k.spec.ID)
	return &kernelv1.Session{Id: sampleSession, Agent: agent, Key: r.GetKey(), State: "idle"}, nil
}

// List implements kernelv1.SessionsServer.
func (x sessions) List(ctx context.Context, r *kernelv1.ListSessionsRequest) (*kernelv1.ListSessionsResponse, error) {
	return &kernelv1.ListSessionsResponse{}, x.lane(ctx, "Sessions.List", r.GetLane())
}

// History implements kernelv1.SessionsServer.
func (x sessions) History(ctx context.Context, r *kernelv1.HistoryRequest) (*kernelv1.HistoryResponse, error) {
	return &kernelv1.HistoryResponse{}, x.lane(ctx, "Sessions.History", r.GetLane())
}

// Pending implements kernelv1.SessionsServer.
func (x sessions) Pending(ctx context.Context, r *kernelv1.PendingRequest) (*kernelv1.PendingResponse, error) {
	return &kernelv1.PendingResponse{}, x.lane(ctx, "Sessions.Pending", r.GetLane())
}

// Presence implements kernelv1.SessionsServer.
func (x sessions) Presence(context.Context, *kernelv1.PresenceRequest) (*kernelv1.PresenceResponse, error) {
	if !x.k.spec.Permissions.Presence {
		return nil, x.denied("it asks when people were active", "permissions: {presence: true}")
	}
	return &kernelv1.PresenceResponse{}, nil
}

type tools struct {
	kernelv1.UnimplementedToolsServer
	services
}

// List implements kernelv1.ToolsServer.
func (x tools) List(ctx context.Context, r *kernelv1.ListToolsRequest) (*kernelv1.ListToolsResponse, error) {
	return &kernelv1.ListToolsResponse{Etag: "1"}, x.lane(ctx, "Tools.List", r.GetLane())
}

// Call implements kernelv1.ToolsServer.
func (x tools) Call(ctx context.Context, r *kernelv1.CallToolRequest) (*extensionv1.CallResult, error) {
	if err := x.lane(ctx, "Tools.Call", r.GetLane()); err != nil {
		return nil, err
	}
	if name := r.GetName(); name != "" {
		if err := mayCall(x.k.spec, name); err != nil {
			x.k.note("grants", err.Error())
			return nil, err
		}
	}
	return &extensionv1.CallResult{Content: "there is no such tool here", IsError: true}, nil
}

type models struct {
	kernelv1.UnimplementedModelsServer
	services
}

// Complete implements kernelv1.ModelsServer.
func (x models) Complete(r *kernelv1.CompleteRequest, stream kernelv1.Models_CompleteServer) error {
	if err := x.lane(stream.Context(), "Models.Complete", r.GetLane()); err != nil {
		return err
	}
	if x.k.spec.Agent == nil && len(x.k.spec.Permissions.Models) == 0 {
		return x.denied("it asks the model "+r.GetModel(), "permissions: {models: ["+r.GetModel()+"]}")
	}
	return stream.Send(&extensionv1.Delta{
		Text: "Hello.", Finish: "stop", Model: "verify/model", Usage: &extensionv1.Usage{InputTokens: 1, OutputTokens: 1},
	})
}

type channels struct {
	kernelv1.UnimplementedChannelsServer
	services
}

// List implements kernelv1.ChannelsServer.
func (x channels) List(context.Context, *kernelv1.ListChannelsRequest) (*kernelv1.ListChannelsResponse, error) {
	return &kernelv1.ListChannelsResponse{}, nil
}

// Draft implements kernelv1.ChannelsServer.
func (x channels) Draft(stream kernelv1.Channels_DraftServer) error {
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&kernelv1.DraftResponse{})
		}
		if err != nil {
			return err
		}
		if err := x.lane(stream.Context(), "Channels.Draft", r.GetLane()); err != nil {
			return err
		}
	}
}

type values struct {
	kernelv1.UnimplementedKVServer
	services
}

// Get implements kernelv1.KVServer.
func (x values) Get(_ context.Context, r *kernelv1.GetRequest) (*kernelv1.Value, error) {
	x.k.mu.Lock()
	defer x.k.mu.Unlock()
	return x.k.value(r.GetKey()), nil
}

func (k *player) value(key string) *kernelv1.Value {
	return &kernelv1.Value{Key: key, Value: k.values[key].GetValue(), Version: k.versions[key]}
}

// Scan implements kernelv1.KVServer.
func (x values) Scan(_ context.Context, r *kernelv1.ScanRequest) (*kernelv1.ScanResponse, error) {
	x.k.mu.Lock()
	defer x.k.mu.Unlock()
	answer := &kernelv1.ScanResponse{}
	for _, key := range slices.Sorted(maps.Keys(x.k.values)) {
		switch {
		case !strings.HasPrefix(key, r.GetPrefix()) || key <= r.GetAfter():
		case len(answer.Values) == cmp.Or(int(r.GetLimit()), 1000):
			answer.More = true
			return answer, nil
		default:
			answer.Values = append(answer.Values, x.k.value(key))
		}
	}
	return answer, nil
}

type blobs struct {
	kernelv1.UnimplementedBlobsServer
	services
}

// Put implements kernelv1.BlobsServer.
func (x blobs) Put(stream kernelv1.Blobs_PutServer) error {
	if !x.k.spec.Permissions.Blobs {
		return x.denied("it stores a file", "permissions: {blobs: true}")
	}
	var data []byte
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		data = append(data, r.GetData()...)
	}
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	x.k.mu.Lock()
	x.k.blobs[hash] = data
	x.k.mu.Unlock()
	return stream.SendAndClose(&kernelv1.Blob{Hash: hash, Size: int64(len(data))})
}

// Get implements kernelv1.BlobsServer.
func (x blobs) Get(r *kernelv1.GetBlobRequest, stream kernelv1.Blobs_GetServer) error {
	if !x.k.spec.Permissions.Blobs {
		return x.denied("it reads a file", "permissions: {blobs: true}")
	}
	x.k.mu.Lock()
	data, ok := x.k.blobs[r.GetHash()]
	x.k.mu.Unlock()
	if !ok {
		return contract.ErrNotFound
	}
	answer := &kernelv1.GetBlobResponse{Blob: &kernelv1.Blob{Hash: r.GetHash(), Size: int64(len(data))}}
	for chunk := range slices.Chunk(data, contract.MaxBlobChunk) {
		answer.Data = chunk
		if err := stream.Send(answer); err != nil {
			return err
		}
		answer = &kernelv1.GetBlobResponse{}
	}
	return nil
}

type runtime struct {
	kernelv1.UnimplementedRuntimeServer
	services
}

// Report implements kernelv1.RuntimeServer.
func (x runtime) Report(_ context.Context, r *extensionv1.Readiness) (*kernelv1.ReportResponse, error) {
	if d := r.GetDescription(); d != nil {
		if err := x.k.spec.Check(d); err != nil {
			x.k.note("grants", err.Error())
			return nil, err
		}
	}
	return &kernelv1.ReportResponse{}, nil
}

// wrongUserMessage says what is wrong with a message of a person; empty: nothing.
func wrongUserMessage(payload []byte) string {
	var m contract.UserMessage
	if err := json.Unmarshal(payload, &m); err != nil {
		return err.Error()
	}
	switch {
	case m.UserID == "":
		return "user_id is missing: no one is admitted without one"
	case m.ConversationID == "":
		return "conversation_id is missing: the answer would have no address"
	}
	return ""
}
