// Package host is the kernel's side of the contract: it serves the kernel's
// services to the extensions on one unix socket, and carries deliveries, calls
// and completions to them. On another socket it serves the owner.
//
// Every request carries the token that its extension got in Init. The identity and the
// grants of the caller follow from the token alone, which is valid as long as the
// generation that it was made for. The owner has a token for each run of the kernel,
// which is valid on the owner's socket only, and for the services of adminv1 only.
package host

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/ownuser"
	"github.com/switchboard-run/switchboard/kernel/blobs"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/models"
	"github.com/switchboard-run/switchboard/kernel/session"
	"github.com/switchboard-run/switchboard/kernel/tools"
)

// Options are the parts of the kernel that a host serves.
type Options struct {
	Bus       *bus.Bus
	Sessions  *session.Store
	Directory *directory.Directory
	Tools     *tools.Runner
	Models    *models.Router
	Blobs     *blobs.Store // nil: files are not stored
	Log       hclog.Logger
	// OwnerToken authorizes the owner's requests; empty: none is admitted.
	OwnerToken string
	// Report gets changes of readiness and of tools. An error refuses the tools.
	Report func(extension string, generation int64, r *extensionv1.Readiness) error
	// Stuck is called when a running extension no longer takes deliveries: its process
	// has to be restarted.
	Stuck func(extension string, generation int64, reason string)
}

// Host serves extensions. It is safe for concurrent use.
type Host struct {
	Options
	server          *grpc.Server
	admission       *admission
	streamLossGrace time.Duration
	stopped         context.Context
	stop            context.CancelFunc
	deliveries      sync.WaitGroup // one for each stream of deliveries

	owner *client

	mu      sync.Mutex
	clients map[string]*client // by token
	running map[string]*instance
}

// instance is one running generation of an extension.
type instance struct {
	actor       *bus.Actor
	conn        grpc.ClientConnInterface
	description *extensionv1.Description
	ctx         context.Context
	stopping    atomic.Bool   // it was asked to shut down
	read        chan struct{} // closed when its answers to deliveries were read
	broken      atomic.Int64
}

// handlesEvents reports whether it serves the stream of deliveries.
func (g *instance) handlesEvents() bool {
	return g.description.GetEvents() || g.description.GetChannel() || g.actor.Agent
}

// bound returns a context that ends with the process too.
func (g *instance) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// reconnectGrace is how long calls are refused after a connection broke: by then the
// supervisor knows whether the process has ended.
const reconnectGrace = 2 * time.Second

// reachable reports whether the process can be called.
func (g *instance) reachable() bool {
	return !g.stopping.Load() && g.ctx.Err() == nil && time.Now().UnixNano() >= g.broken.Load()
}

// failed notes that the connection is broken, if the error says so.
func (g *instance) failed(err error) {
	if status.Code(err) == codes.Unavailable {
		g.broken.Store(time.Now().Add(reconnectGrace).UnixNano())
	}
}

// streamWorkers is how many goroutines serve requests, and reuse their grown
// stacks. Requests beyond these get goroutines of their own.
const streamWorkers = 16

// What a connection may take before it has shown a token.
const (
	handshakeTime = 10 * time.Second
	maxHeader     = 16 << 10
)

// New returns a host that serves nothing yet.
func New() *Host {
	h := &Host{
		streamLossGrace: defaultStreamLossGrace, clients: map[string]*client{}, owner: newClient(owner),
		running: map[string]*instance{},
	}
	h.stopped, h.stop = context.WithCancel(context.Background())
	h.admission = newAdmission(h)
	h.server = grpc.NewServer(
		grpc.MaxRecvMsgSize(contract.MaxMessage), grpc.MaxSendMsgSize(contract.MaxMessage),
		grpc.UnaryInterceptor(h.serveUnary), grpc.StreamInterceptor(h.serveStream),
		grpc.Creds(ownuser.Credentials()), grpc.InTapHandle(h.admission.tap),
		grpc.MaxConcurrentStreams(uint32(defaultLimits.requests)),
		grpc.ConnectionTimeout(handshakeTime), grpc.MaxHeaderListSize(maxHeader), grpc.WaitForHandlers(true),
		grpc.ReadBufferSize(32<<10), grpc.WriteBufferSize(64<<10), // there are many connections
		grpc.NumStreamWorkers(streamWorkers),
		grpc.StaticStreamWindowSize(contract.StreamWindow), grpc.StaticConnWindowSize(contract.ConnWindow),
	)
	kernelv1.RegisterBusServer(h.server, busService{h: h})
	kernelv1.RegisterSessionsServer(h.server, sessionsService{h: h})
	kernelv1.RegisterToolsServer(h.server, toolsService{h: h})
	kernelv1.RegisterModelsServer(h.server, modelsService{h: h})
	kernelv1.RegisterChannelsServer(h.server, channelsService{h: h})
	kernelv1.RegisterKVServer(h.server, kvService{h: h})
	kernelv1.RegisterBlobsServer(h.server, blobsService{h: h})
	kernelv1.RegisterRuntimeServer(h.server, runtimeService{h: h})
	return h
}

// RegisterService implements grpc.ServiceRegistrar, for services of adminv1.
func (h *Host) RegisterService(d *grpc.ServiceDesc, service any) {
	h.server.RegisterService(d, service)
}

// Serve serves extensions until Stop. Options must be set.
func (h *Host) Serve(l net.Listener) error { return h.serve(l, false) }

// ServeOwner serves the owner until Stop: processes of this user that show the token.
func (h *Host) ServeOwner(l net.Listener) error { return h.serve(l, true) }

func (h *Host) serve(l net.Listener, control bool) error {
	if err := h.server.Serve(h.admission.listen(l, control)); err != nil {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

// Stop ends all connections, and waits for the goroutines that served them.
func (h *Host) Stop() {
	h.stop()
	h.server.Stop()
	h.deliveries.Wait()
}

// Admit makes the token of a generation that is about to start.
func (h *Host) Admit(a *bus.Actor) (token string) {
	token = rand.Text()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients[token] = newClient(a)
	return token
}

// Open connects an active extension to the bus. Between its calls and its deliveries it calls
// reachable, which makes its tools known. Its streams end with ctx.
func (h *Host) Open(
	ctx context.Context, a *bus.Actor, conn grpc.ClientConnInterface, d *extensionv1.Description, reachable func(),
) {
	g := &instance{actor: a, conn: conn, description: d, ctx: ctx, read: make(chan struct{})}
	h.mu.Lock()
	h.running[a.ID] = g
	h.mu.Unlock()
	reachable()
	isCommand := func(t *extensionv1.Tool) bool { return t.GetCommand() != "" }
	if g.handlesEvents() || len(a.Tools) > 0 || slices.ContainsFunc(d.GetTools(), isCommand) {
		sink := h.Bus.Attach(a)
		h.deliveries.Go(func() { h.deliver(g, sink) })
	} else {
		close(g.read)
	}
}

// instance returns the running generation of an extension. Nil: it is stopping, or
// its process has ended, which shows here before Gone is called.
func (h *Host) instance(extension string) *instance {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.running[extension]; g != nil && g.reachable() {
		return g
	}
	return nil
}

// Actor implements tools.Remote.
func (h *Host) Actor(extension string) *bus.Actor {
	if g := h.instance(extension); g != nil {
		return g.actor
	}
	return nil
}

// client returns the client that makes a request: the one of its token.
func (h *Host) client(ctx context.Context, md metadata.MD) (*client, error) {
	given := strings.Join(md.Get(contract.TokenHeader), "")
	if c := connOf(ctx); c != nil && c.control {
		if h.OwnerToken == "" || subtle.ConstantTimeCompare([]byte(given), []byte(h.OwnerToken)) != 1 {
			return nil, errNoOwner
		}
		return h.owner, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.clients[given]; c != nil {
		return c, nil
	}
	return nil, errNoToken
}

// clientKey is the key of the client in the context of a request, which the tap adds.
type clientKey struct{}

func clientOf(ctx context.Context) *client   { return ctx.Value(clientKey{}).(*client) }
func actorOf(ctx context.Context) *bus.Actor { return clientOf(ctx).actor }

const adminServices = "/switchboard.admin.v1."

// authorize refuses a method that the caller may not call.
func authorize(a *bus.Actor, method string) error {
	if service, isAdmin := strings.CutPrefix(method, adminServices); isAdmin {
		return a.MayAdminister(strings.HasPrefix(service, "Read/"))
	}
	if a == owner {
		return fmt.Errorf("%w: %s is for extensions", contract.ErrDenied, method)
	}
	return nil
}

func (h *Host) serveUnary(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (any, error) {
	read(ctx, request)
	if err := authorize(actorOf(ctx), info.FullMethod); err != nil {
		return nil, contract.ToStatus(err)
	}
	end, err := h.admission.begin(ctx, clientOf(ctx), info.FullMethod)
	if err != nil {
		return nil, contract.ToStatus(err)
	}
	defer end()
	reply, err := next(ctx, request)
	return reply, contract.ToStatus(err)
}

func (h *Host) serveStream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler,
) error {
	if err := authorize(actorOf(stream.Context()), info.FullMethod); err != nil {
		return contract.ToStatus(err)
	}
	return contract.ToStatus(next(service, meteredStream{stream, h.admission}))
}

type meteredStream struct {
	grpc.ServerStream
	d *admission
}

// RecvMsg implements grpc.ServerStream.
func (s meteredStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		read(s.Context(), m)
		s.d.note(actorOf(s.Context()))
	}
	return err
}
