// Package host is the kernel's side of the contract: it serves the kernel's
// services to the extensions on one unix socket, and carries deliveries, calls
// and completions to them. On another socket it serves the owner.
//
// Every request carries the token that its extension was given in Init; who calls,
// and with which grants, follows from the token alone, and ends with the generation
// that it was made for. The owner has a token for each run of the kernel, which is
// good on the owner's socket only, and for the services of adminv1 only.
package host

import (
	"context"
	"crypto/rand"
	"encoding/hex"
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
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/models"
	"github.com/switchboard-run/switchboard/kernel/session"
	"github.com/switchboard-run/switchboard/kernel/tools"
)

// Options are what a host serves.
type Options struct {
	Bus       *bus.Bus
	Sessions  *session.Store
	Directory *directory.Directory
	Tools     *tools.Runner
	Models    *models.Router
	Log       hclog.Logger
	// Report is told a change of readiness.
	Report func(extension string, generation int64, r *extensionv1.Readiness)
	// Stuck is told that a running extension does not take deliveries any more:
	// its process has to be restarted.
	Stuck func(extension string, generation int64, reason string)
}

// Host serves extensions. It is safe for concurrent use.
type Host struct {
	Options
	server          *grpc.Server
	admission       *admission
	pace            *pace
	streamLossGrace time.Duration

	mu         sync.Mutex
	ownerToken string
	tokens     map[string]*bus.Actor
	admitted   map[*bus.Actor]struct{} // those that have a token
	running    map[string]*instance
}

// instance is one running generation of an extension.
type instance struct {
	actor       *bus.Actor
	conn        grpc.ClientConnInterface
	description *extensionv1.Description
	ctx         context.Context
	stopping    atomic.Bool // it was asked to shut down
	broken      atomic.Int64
}

// handlesEvents says whether it serves the stream of deliveries.
func (g *instance) handlesEvents() bool {
	return g.description.GetEvents() || g.description.GetChannel() || g.actor.Agent
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
		streamLossGrace: defaultStreamLossGrace, tokens: map[string]*bus.Actor{},
		admitted: map[*bus.Actor]struct{}{}, running: map[string]*instance{},
	}
	h.admission, h.pace = newAdmission(h), newPace()
	h.server = grpc.NewServer(
		grpc.MaxRecvMsgSize(contract.MaxMessage), grpc.MaxSendMsgSize(contract.MaxMessage),
		grpc.ChainUnaryInterceptor(h.authenticateUnary), grpc.ChainStreamInterceptor(h.authenticateStream),
		grpc.Creds(ownuser.Credentials()), grpc.InTapHandle(h.admission.tap), grpc.MaxConcurrentStreams(uint32(defaultLimits.requests)),
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
	kernelv1.RegisterRuntimeServer(h.server, runtimeService{h: h})
	return h
}

// RegisterService implements grpc.ServiceRegistrar, for services of adminv1.
func (h *Host) RegisterService(d *grpc.ServiceDesc, service any) {
	h.server.RegisterService(d, service)
}

// Serve serves extensions until Stop. Options must be set.
func (h *Host) Serve(listener net.Listener) error {
	if err := h.server.Serve(h.admission.listen(listener, false)); err != nil {
		return fmt.Errorf("serve extensions: %w", err)
	}
	return nil
}

// ServeOwner serves the owner until Stop: processes of this user that show the token.
func (h *Host) ServeOwner(listener net.Listener, token string) error {
	h.mu.Lock()
	h.ownerToken = token
	h.mu.Unlock()
	if err := h.server.Serve(h.admission.listen(listener, true)); err != nil {
		return fmt.Errorf("serve the owner: %w", err)
	}
	return nil
}

// Stop ends all connections.
func (h *Host) Stop() { h.server.Stop() }

// Admit makes the token of a generation that is about to start.
func (h *Host) Admit(a *bus.Actor) (token string) {
	var raw [24]byte
	_, _ = rand.Read(raw[:]) // never fails, by its documentation
	token = hex.EncodeToString(raw[:])
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens[token] = a
	h.admitted[a] = struct{}{}
	return token
}

// Open connects an active extension to the bus. Its streams end with ctx.
func (h *Host) Open(ctx context.Context, a *bus.Actor, conn grpc.ClientConnInterface, d *extensionv1.Description) {
	g := &instance{actor: a, conn: conn, description: d, ctx: ctx}
	h.mu.Lock()
	h.running[a.ID] = g
	h.mu.Unlock()
	if g.handlesEvents() || slices.ContainsFunc(d.GetTools(), func(t *extensionv1.Tool) bool { return t.GetCommand() != "" }) {
		go h.deliver(g, h.Bus.Attach(a))
	}
}

// Gone voids the token of a generation.
func (h *Host) Gone(extension string, generation int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for token, a := range h.tokens {
		if a.ID == extension && a.Generation == generation {
			delete(h.tokens, token)
			delete(h.admitted, a)
			h.pace.forget(a)
		}
	}
	if g := h.running[extension]; g != nil && g.actor.Generation == generation {
		delete(h.running, extension)
	}
}

// valid says whether the generation is not gone: a stream may outlive it for a
// moment.
func (h *Host) valid(a *bus.Actor) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.admitted[a]; !ok {
		return fmt.Errorf("%w: generation %d of %s has ended", contract.ErrStale, a.Generation, a.ID)
	}
	return nil
}

// Stopping tells the host that an extension is asked to shut down: it may finish
// its work, and gets no more.
func (h *Host) Stopping(extension string) {
	if g := h.instance(extension); g != nil {
		g.stopping.Store(true)
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

type actorKey struct{}

func actorOf(ctx context.Context) *bus.Actor { return ctx.Value(actorKey{}).(*bus.Actor) }

// authenticate says who calls a method, and refuses what that caller may not call.
func (h *Host) authenticate(ctx context.Context, method string) (context.Context, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	a, err := h.actor(ctx, md)
	if err != nil {
		return nil, err
	}
	if service, isAdmin := strings.CutPrefix(method, adminServices); isAdmin {
		err = a.MayAdminister(strings.HasPrefix(service, "Read/"))
	} else if a == owner {
		err = fmt.Errorf("%w: %s is for extensions", contract.ErrDenied, method)
	}
	return context.WithValue(ctx, actorKey{}, a), contract.ToStatus(err)
}

const adminServices = "/switchboard.admin.v1."

func (h *Host) authenticateUnary(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	read(ctx, request)
	ctx, err := h.authenticate(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	if a := actorOf(ctx); a != owner {
		end, err := h.pace.begin(ctx, a, info.FullMethod)
		if err != nil {
			return nil, contract.ToStatus(err)
		}
		defer end()
	}
	reply, err := next(ctx, request)
	return reply, contract.ToStatus(err)
}

func (h *Host) authenticateStream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx, err := h.authenticate(stream.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	return contract.ToStatus(next(service, authenticated{stream, ctx, h.pace}))
}

type authenticated struct {
	grpc.ServerStream
	ctx  context.Context
	pace *pace
}

// RecvMsg implements grpc.ServerStream.
func (s authenticated) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		read(s.ctx, m)
		if a := actorOf(s.ctx); a != owner {
			s.pace.seen(a)
		}
	}
	return err
}

func (s authenticated) Context() context.Context { return s.ctx }
