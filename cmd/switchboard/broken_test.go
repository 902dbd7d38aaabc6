package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// broken is the program of an extension that is written against the protocol alone, has one
// of everything, and breaks the rule that BROKEN names; without one, none.
func broken() {
	b := &brokenExtension{mode: os.Getenv("BROKEN")}
	switch b.mode {
	case "talks before the handshake":
		fmt.Println("Starting...")
	case "dies":
		fmt.Fprintln(os.Stderr, "cannot find the moon")
		os.Exit(3)
	}
	version := "1"
	if b.mode == "another version" {
		version = "7"
	}
	l, err := net.Listen("unix", filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "b"))
	if err != nil {
		panic(err)
	}
	options := []grpc.ServerOption{grpc.StatsHandler(&brokenConnections{survives: b.is("survives the kernel") || b.is("stays")})}
	if !b.is("takes 4 MiB") {
		options = append(options, grpc.MaxRecvMsgSize(contract.MaxMessage))
	}
	s := grpc.NewServer(options...)
	if !b.is("has no health service") {
		h := health.NewServer()
		h.SetServingStatus("plugin", healthpb.HealthCheckResponse_SERVING)
		healthpb.RegisterHealthServer(s, h)
	}
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "plugin.GRPCController", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Shutdown", Handler: b.leave}}}, b)
	extensionv1.RegisterExtensionServer(s, b)
	extensionv1.RegisterEventsServer(s, b)
	extensionv1.RegisterToolsServer(s, b)
	extensionv1.RegisterModelsServer(s, b)
	if !b.is("shows no drafts") {
		extensionv1.RegisterDraftsServer(s, b)
	}
	fmt.Printf("1|%s|unix|%s|grpc\n", version, l.Addr())
	_ = s.Serve(l)
}

type brokenExtension struct {
	extensionv1.UnimplementedExtensionServer
	extensionv1.UnimplementedEventsServer
	extensionv1.UnimplementedToolsServer
	extensionv1.UnimplementedModelsServer
	extensionv1.UnimplementedDraftsServer
	mode      string
	described atomic.Int32
	inits     atomic.Int32
	busy      atomic.Int32

	mu   sync.Mutex
	init *extensionv1.InitRequest
	conn *grpc.ClientConn
	lane string // of the delivery before
	seen map[string]bool
}

func (b *brokenExtension) is(mode string) bool { return b.mode == mode }

// leave is plugin.GRPCController/Shutdown.
func (b *brokenExtension) leave(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor,
) (any, error) {
	if !b.is("stays") {
		time.AfterFunc(50*time.Millisecond, func() { os.Exit(0) })
	}
	return &emptypb.Empty{}, decode(&emptypb.Empty{})
}

// brokenConnections ends the process with the kernel.
type brokenConnections struct {
	survives bool
	open     atomic.Int32
}

func (c *brokenConnections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return ctx
}
func (c *brokenConnections) HandleRPC(context.Context, stats.RPCStats) {}
func (c *brokenConnections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}
func (c *brokenConnections) HandleConn(_ context.Context, e stats.ConnStats) {
	switch e.(type) {
	case *stats.ConnBegin:
		c.open.Add(1)
	case *stats.ConnEnd:
		if c.open.Add(-1) == 0 && !c.survives {
			os.Exit(0)
		}
	}
}

const brokenSchema = `{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`

func (b *brokenExtension) Describe(context.Context, *extensionv1.DescribeRequest) (*extensionv1.Description, error) {
	d := &extensionv1.Description{Channel: true, Drafts: true, Models: true, Events: true, Tools: []*extensionv1.Tool{
		{Name: "look", Description: "Looks.", Schema: []byte(brokenSchema), ReadOnly: true},
		{Name: "write", Description: "Writes.", Schema: []byte(brokenSchema), Command: "write"},
	}}
	switch n := b.described.Add(1); {
	case b.is("describes by mood") && n%2 == 0:
		d.Tools = d.Tools[:1]
	case b.is("has a command too many"):
		d.Tools[0].Command = "look"
	case b.is("describes no models"):
		d.Models = false
	case b.is("says nothing about a tool"):
		d.Tools[0].Description = ""
	case b.is("has no schema"):
		d.Tools[0].Schema = []byte(`{"type":"array"}`)
	}
	return d, nil
}

func (b *brokenExtension) Init(_ context.Context, r *extensionv1.InitRequest) (*extensionv1.InitResponse, error) {
	n := b.inits.Add(1)
	lock := filepath.Join(r.GetDataDir(), "lock")
	switch {
	case b.is("needs a secret"):
		return nil, errors.New("TOKEN is not set")
	case b.is("never starts"):
		select {}
	case b.is("starts once") && n > 1:
		return nil, errors.New("started already")
	case b.is("leaves a lock") && n == 1:
		f, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, err
		}
		_ = f.Close()
	}
	conn, err := grpc.NewClient(r.GetKernelAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.init, b.conn, b.seen = r, conn, map[string]bool{}
	return &extensionv1.InitResponse{}, err
}

func (b *brokenExtension) Health(context.Context, *extensionv1.HealthRequest) (*extensionv1.Readiness, error) {
	switch {
	case b.is("is silent about its health"):
		return &extensionv1.Readiness{}, nil
	case b.is("is healthy when idle"):
		if b.busy.Load() > 0 {
			return nil, status.Error(grpccodes.Unavailable, "busy")
		}
	}
	return &extensionv1.Readiness{State: extensionv1.Readiness_STATE_READY}, nil
}

func (b *brokenExtension) Shutdown(context.Context, *extensionv1.ShutdownRequest) (*extensionv1.ShutdownResponse, error) {
	if b.is("never ends") {
		select {}
	}
	return &extensionv1.ShutdownResponse{}, nil
}

func (b *brokenExtension) Deliver(stream extensionv1.Events_DeliverServer) error {
	var mu sync.Mutex
	send := func(f *extensionv1.OutcomeFrame) {
		mu.Lock()
		defer mu.Unlock()
		_ = stream.Send(f)
	}
	if !b.is("gives no credit") {
		send(&extensionv1.OutcomeFrame{Credit: 4})
	}
	for {
		frame, err := stream.Recv()
		if err != nil {
			return err
		}
		if len(frame.GetCancels()) > 0 && b.is("knows no cancels") {
			return status.Error(grpccodes.Unimplemented, "cancel")
		}
		for _, d := range frame.GetDeliveries() {
			b.busy.Add(1)
			if !b.is("gives credit once") {
				send(&extensionv1.OutcomeFrame{Credit: 1})
			}
			go func() {
				defer b.busy.Add(-1)
				if o := b.handle(d); o != nil {
					o.Token = d.GetToken()
					send(&extensionv1.OutcomeFrame{Outcomes: []*busv1.Outcome{o}})
					if b.is("answers twice") {
						send(&extensionv1.OutcomeFrame{Outcomes: []*busv1.Outcome{o}})
					}
				}
			}()
		}
	}
}

func ack(effects ...*busv1.Effect) *busv1.Outcome {
	return &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK, Effects: effects}
}

func drop(reason string) *busv1.Outcome {
	return &busv1.Outcome{Kind: busv1.Outcome_KIND_DROP, Reason: reason}
}

func publish(topic, payload string) *busv1.Effect {
	return &busv1.Effect{Kind: &busv1.Effect_Publish{Publish: &busv1.Publish{Topic: topic, Payload: []byte(payload)}}}
}

func (b *brokenExtension) handle(d *busv1.Delivery) *busv1.Outcome {
	event := d.GetEvent()
	var payload map[string]any
	garbage := json.Unmarshal(event.GetPayload(), &payload) != nil || payload == nil
	switch {
	case garbage && b.is("dies of garbage"):
		panic("assignment to entry in nil map")
	case garbage && b.is("panics on garbage"):
		return &busv1.Outcome{Kind: busv1.Outcome_KIND_FAIL, Reason: "handler: panic: assignment to entry in nil map"}
	case garbage:
		return drop("no JSON object")
	case b.is("acks everything"):
		return ack()
	case event.GetTopic() == contract.TopicChannelSend+"broken":
		if b.is("removes no drafts") && payload["text"] == "" {
			return drop("nothing to send")
		}
		if b.is("keeps its receipts") || payload["text"] == "" {
			return ack()
		}
		return ack(&busv1.Effect{Kind: &busv1.Effect_Receipt{
			Receipt: &busv1.Receipt{ProviderId: event.GetId(), Conversation: "verify"},
		}})
	case event.GetTopic() != "broken.go" && b.is("gives no reasons"):
		return drop("")
	case event.GetTopic() != "broken.go":
		return drop("unknown topic")
	}
	return b.work(d)
}

// work handles broken.go.
func (b *brokenExtension) work(d *busv1.Delivery) *busv1.Outcome {
	b.mu.Lock()
	previous, again := b.lane, b.seen[d.GetEvent().GetId()]
	b.lane, b.seen[d.GetEvent().GetId()] = d.GetToken(), true
	b.mu.Unlock()
	switch b.mode {
	case "forgets some":
		return nil
	case "cannot repeat":
		if again {
			return nil
		}
	case "is healthy when idle":
		time.Sleep(300 * time.Millisecond)
	case "answers without a kind":
		return &busv1.Outcome{}
	case "publishes what it may not":
		return ack(publish("others.done", "{}"))
	case "queues inputs":
		return ack(&busv1.Effect{Kind: &busv1.Effect_Input{Input: &busv1.Input{Session: "s1", Kind: "notice", Text: "Hi"}}})
	case "publishes no JSON":
		return ack(publish("broken.done", "{"))
	case "reports strangers":
		return ack(publish(contract.TopicUserMessage, `{"text":"hello","conversation_id":"1"}`))
	case "publishes apart":
		b.commit(&busv1.Commit{Lane: d.GetToken(), Effects: []*busv1.Effect{publish("broken.done", "{}")}})
	case "uses an old lane":
		b.commit(&busv1.Commit{Lane: previous, Effects: []*busv1.Effect{publish("broken.done", "{}")}})
	case "uses no token":
		_, _ = kernelv1.NewKVClient(b.conn).Get(context.Background(), &kernelv1.GetRequest{Key: "a"})
	case "talks":
		fmt.Println("working...")
	}
	return ack(publish("broken.done", "{}"))
}

// commit commits apart from an answer.
func (b *brokenExtension) commit(c *busv1.Commit) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, contract.TokenHeader, b.init.GetKernelToken())
	stream, err := kernelv1.NewBusClient(b.conn).Commit(ctx)
	if err == nil && stream.Send(&kernelv1.CommitFrame{Commits: []*busv1.Commit{c}}) == nil {
		_, _ = stream.Recv()
	}
}

func (b *brokenExtension) Call(_ context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
	failed := func(text string) (*extensionv1.CallResult, error) {
		return &extensionv1.CallResult{IsError: true, Content: text}, nil
	}
	if r.GetName() != "look" && r.GetName() != "write" && !b.is("has every tool") {
		return nil, status.Error(grpccodes.NotFound, "no such tool")
	}
	var arguments struct {
		Text *string `json:"text"`
	}
	switch err := json.Unmarshal(r.GetArguments(), &arguments); {
	case err != nil && b.is("dies of arguments"):
		panic(err)
	case (err != nil || arguments.Text == nil) && !b.is("reads no arguments") && !b.is("has every tool"):
		return failed("text is missing")
	case b.is("has no results"):
		return nil, status.Error(grpccodes.Internal, "something went wrong")
	case r.GetRepeat() && b.is("knows its calls"):
		return failed("this call was made before")
	case r.GetCommand() != "" && b.is("answers no commands"):
		return &extensionv1.CallResult{}, nil
	case r.GetName() == "look" && b.is("writes when it looks"):
		put := &busv1.Effect{Kind: &busv1.Effect_Put{Put: &busv1.Put{Key: "looked", Value: []byte("1")}}}
		return &extensionv1.CallResult{Content: "{}", Effects: []*busv1.Effect{put}}, nil
	case b.is("a tool publishes what it may not"):
		return &extensionv1.CallResult{Content: "{}", Effects: []*busv1.Effect{publish("others.done", "{}")}}, nil
	}
	return &extensionv1.CallResult{Content: `{"text":"done"}`}, nil
}

func (b *brokenExtension) Complete(r *extensionv1.CompleteRequest, stream extensionv1.Models_CompleteServer) error {
	d := &extensionv1.Delta{Text: "Hello", Finish: "stop", Usage: &extensionv1.Usage{InputTokens: 1, OutputTokens: 1}}
	switch b.mode {
	case "never finishes":
		d.Finish = ""
	case "goes on after the finish":
		_ = stream.Send(d)
	case "thinks forever":
		<-stream.Context().Done()
	}
	return stream.Send(d)
}

func (b *brokenExtension) Draft(stream extensionv1.Drafts_DraftServer) error {
	for {
		if _, err := stream.Recv(); err != nil {
			return stream.SendAndClose(&extensionv1.DraftResponse{})
		}
	}
}
