package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/host"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/models"
	"github.com/switchboard-run/switchboard/kernel/tools"
)

// world is a kernel whose services are reached over a real socket.
type world struct {
	*kerneltest.World
	host   *host.Host
	dir    string
	socket string
	stuck  chan string
	next   int64
}

// newWorld serves extensions; before has the host before it serves.
func newWorld(t *testing.T, before ...func(*host.Host)) *world {
	t.Helper()
	t.Parallel()
	dir, err := os.MkdirTemp("", "sb") // short: the paths of sockets are
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &world{
		World:  kerneltest.New(t),
		host:   host.New(),
		dir:    dir,
		socket: filepath.Join(dir, "k"),
		stuck:  make(chan string, 10),
	}
	w.host.Options = host.Options{
		Bus:       w.Bus,
		Sessions:  w.Sessions,
		Directory: w.Directory,
		Tools:     w.Tools,
		Models: &models.Router{
			Directory: w.Directory,
			Remote:    w.host,
			Ledger:    models.NewLedger(w.Bus, w.Directory, hclog.NewNullLogger()),
		},
		Log:    hclog.NewNullLogger(),
		Report: func(string, int64, *extensionv1.Readiness) error { return nil },
		Stuck:  func(extension string, _ int64, _ string) { w.stuck <- extension },

		OwnerToken: ownerToken,
	}
	w.Tools.Remote = w.host
	adminv1.RegisterReadServer(w.host, adminv1.UnimplementedReadServer{})
	adminv1.RegisterManageServer(w.host, adminv1.UnimplementedManageServer{})
	adminv1.RegisterInstallationServer(w.host, adminv1.UnimplementedInstallationServer{})
	for _, f := range before {
		f(w.host)
	}
	w.listen(w.socket, w.host.Serve)
	return w
}

// listen serves a socket until the test ends.
func (w *world) listen(socket string, serve func(net.Listener) error) {
	w.T.Helper()
	listener, err := (&net.ListenConfig{}).Listen(w.T.Context(), "unix", socket)
	if err != nil {
		w.T.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- serve(listener) }()
	w.T.Cleanup(func() {
		w.host.Stop()
		if err := <-served; err != nil {
			w.T.Error(err)
		}
	})
}

// instance is an extension on the other side of the socket: a client of the
// kernel's services.
type instance struct {
	w     *world
	actor *bus.Actor
	conn  *grpc.ClientConn
	stop  context.CancelFunc // of the process

	cancel context.CancelFunc // of what the supervisor knows of it

	bus      kernelv1.BusClient
	sessions kernelv1.SessionsClient
	tools    kernelv1.ToolsClient
	models   kernelv1.ModelsClient
	kv       kernelv1.KVClient
	runtime  kernelv1.RuntimeClient
	channels kernelv1.ChannelsClient
}

// admit starts the next generation of an extension.
func (w *world) admit(a bus.Actor) *instance {
	w.T.Helper()
	w.next++
	a.Generation = w.next
	return w.client(&a, w.host.Admit(&a))
}

func (w *world) client(a *bus.Actor, token string) *instance {
	w.T.Helper()
	conn := w.dial(w.socket, token)
	return &instance{
		w:        w,
		actor:    a,
		conn:     conn,
		bus:      kernelv1.NewBusClient(conn),
		sessions: kernelv1.NewSessionsClient(conn),
		tools:    kernelv1.NewToolsClient(conn),
		models: kernelv1.NewModelsClient(
			conn,
		),
		kv:       kernelv1.NewKVClient(conn),
		runtime:  kernelv1.NewRuntimeClient(conn),
		channels: kernelv1.NewChannelsClient(conn),
	}
}

func (w *world) dial(socket, token string) *grpc.ClientConn {
	w.T.Helper()
	with := func(ctx context.Context) context.Context {
		if token == "" {
			return ctx
		}
		return metadata.AppendToOutgoingContext(ctx, contract.TokenHeader, token)
	}
	conn, err := grpc.NewClient(
		"unix:"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(contract.MaxMessage),
			grpc.MaxCallSendMsgSize(contract.MaxMessage),
		),
		grpc.WithUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				return invoke(with(ctx), method, req, reply, cc, opts...)
			},
		),
		grpc.WithStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				return open(with(ctx), desc, cc, method, opts...)
			},
		),
	)
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { _ = conn.Close() })
	return conn
}

// commit sends one commit on a stream of its own and returns its receipt.
func (g *instance) commit(lane string, effects ...*busv1.Effect) (*busv1.CommitReceipt, error) {
	g.w.T.Helper()
	stream, err := g.bus.Commit(g.w.T.Context())
	if err != nil {
		return nil, contract.FromStatus(err)
	}
	err = stream.Send(&kernelv1.CommitFrame{Commits: []*busv1.Commit{{Lane: lane, Effects: effects}}})
	if err != nil && !errors.Is(err, io.EOF) { // Recv says why the stream has ended
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	frame, err := stream.Recv()
	if err != nil {
		return nil, contract.FromStatus(err)
	}
	return frame.GetReceipts()[0], contract.FromProto(frame.GetReceipts()[0].GetError())
}

func (g *instance) mustCommit(effects ...*busv1.Effect) {
	g.w.T.Helper()
	if _, err := g.commit("", effects...); err != nil {
		g.w.T.Fatal(err)
	}
}

// process is the extension's side of an instance: what the kernel calls. Methods
// that are not set are not served.
type process struct {
	extensionv1.UnimplementedEventsServer
	extensionv1.UnimplementedToolsServer
	extensionv1.UnimplementedModelsServer
	extensionv1.UnimplementedDraftsServer

	deliver  func(extensionv1.Events_DeliverServer) error
	call     func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error)
	complete func(*extensionv1.CompleteRequest, extensionv1.Models_CompleteServer) error
	draft    func(extensionv1.Drafts_DraftServer) error
}

func (p *process) Deliver(s extensionv1.Events_DeliverServer) error {
	if p.deliver == nil {
		<-s.Context().Done()
		return nil
	}
	return p.deliver(s)
}

func (p *process) Call(ctx context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
	return p.call(ctx, r)
}

func (p *process) Complete(r *extensionv1.CompleteRequest, s extensionv1.Models_CompleteServer) error {
	return p.complete(r, s)
}

func (p *process) Draft(s extensionv1.Drafts_DraftServer) error { return p.draft(s) }

// runs makes the instance active: the kernel can reach it.
func (g *instance) runs(p *process, d *extensionv1.Description) {
	g.w.T.Helper()
	socket := filepath.Join(g.w.dir, fmt.Sprint("x", g.actor.Generation))
	listener, err := (&net.ListenConfig{}).Listen(g.w.T.Context(), "unix", socket)
	if err != nil {
		g.w.T.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(contract.MaxMessage), grpc.MaxSendMsgSize(contract.MaxMessage))
	extensionv1.RegisterEventsServer(server, p)
	extensionv1.RegisterToolsServer(server, p)
	extensionv1.RegisterModelsServer(server, p)
	extensionv1.RegisterDraftsServer(server, p)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	ctx, stop := context.WithCancel(context.Background())
	g.cancel = stop
	g.stop = func() {
		stop()
		server.Stop()
		<-done
	}
	g.w.T.Cleanup(g.stop)
	g.w.host.Open(ctx, g.actor, g.w.dial(socket, ""), d, func() {
		g.w.Know(func(s *directory.Snapshot) {
			for _, t := range d.GetTools() {
				s.Tools = append(slices.Clone(s.Tools), tools.Entry(g.actor.ID, t))
			}
		})
	})
}

// dies ends the process, as the supervisor sees it.
func (g *instance) dies() {
	g.stop()
	g.w.host.Gone(g.actor.ID, g.actor.Generation)
	g.w.Bus.Gone(g.actor.ID, g.actor.Generation, "it crashed", false)
}

// follow gets the events of a topic, from the first one on.
func (w *world) follow(topic string) <-chan *busv1.Event {
	events := make(chan *busv1.Event, 100)
	go func() {
		f := journal.EventFilter{Topic: topic}
		_ = w.Bus.Events(w.T.Context(), w.Bus.View, f, true, func(e *busv1.Event) error {
			events <- e
			return nil
		})
	}()
	return events
}
