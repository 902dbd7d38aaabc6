package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// Version is the version of the SDK that Describe reports.
const Version = "go/0.1"

// Server serves one extension, or a group of them, to one kernel over the caller's
// gRPC server. Serve uses it with go-plugin for a process of its own, tests use it in
// theirs.
type Server struct {
	log       hclog.Logger
	instances map[string]*instance
	only      *instance // the only one; nil if there are several
	done      chan struct{}
	closing   sync.Once
	onInit    func() // called at each Init; may be nil

	mu          sync.Mutex
	connections int
}

// NewServer checks that the extensions can be served together. A single extension
// may leave its ID empty; the manifest then names it.
func NewServer(log hclog.Logger, exts ...Extension) (*Server, error) {
	s := &Server{log: log, instances: make(map[string]*instance, len(exts)), done: make(chan struct{})}
	for _, ext := range exts {
		if ext.ID == "" && len(exts) > 1 {
			return nil, errors.New("extensions that share a process need an ID each")
		}
		if s.instances[ext.ID] != nil {
			return nil, fmt.Errorf("two extensions have the ID %q", ext.ID)
		}
		x, err := newInstance(log, ext)
		if err != nil {
			return nil, err
		}
		s.instances[ext.ID], s.only = x, x
	}
	switch {
	case len(exts) == 0:
		return nil, errors.New("no extension to serve")
	case len(exts) > 1:
		s.only = nil
	}
	return s, nil
}

// streamWorkers is the number of reused goroutines that serve requests. Growing the
// stack of a new goroutine costs more than serving a short request. Further
// concurrent requests still get a goroutine each.
const streamWorkers = 8

// Options returns the options that the gRPC server needs.
func (s *Server) Options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(contract.MaxMessage),
		grpc.MaxSendMsgSize(contract.MaxMessage),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.StaticStreamWindowSize(contract.StreamWindow),
		grpc.StaticConnWindowSize(contract.ConnWindow),
		grpc.StatsHandler((*connections)(s)),
		grpc.UnaryInterceptor(s.guardUnary),
		grpc.StreamInterceptor(s.guardStream),
	}
}

func (s *Server) guardUnary(
	ctx context.Context, r any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (reply any, err error) {
	defer func() { err = contract.ToStatus(err) }()
	defer guard(s.log, info.FullMethod, &err)
	return handler(ctx, r)
}

func (s *Server) guardStream(
	srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) (err error) {
	defer func() { err = contract.ToStatus(err) }()
	defer guard(s.log, info.FullMethod, &err)
	return handler(srv, stream)
}

// Register adds the contract's services to a gRPC server with Options.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	extensionv1.RegisterExtensionServer(r, extensionService{s: s})
	extensionv1.RegisterEventsServer(r, eventsService{s: s})
	extensionv1.RegisterToolsServer(r, toolsService{s: s})
	extensionv1.RegisterModelsServer(r, modelsService{s: s})
	extensionv1.RegisterDraftsServer(r, draftsService{s: s})
}

// Done is closed when the server has closed: the kernel has shut down every
// extension or has ended, or Close was called.
func (s *Server) Done() <-chan struct{} { return s.done }

// Close shuts every extension down within the grace; negative: the default.
func (s *Server) Close(grace time.Duration) {
	if grace < 0 {
		grace = defaultGrace
	}
	s.closing.Do(func() {
		defer close(s.done)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			var wg sync.WaitGroup
			for _, x := range s.instances {
				wg.Go(func() { x.shutdown(grace) })
			}
			wg.Wait()
		}()
		timer := time.NewTimer(grace + closeSlack)
		defer timer.Stop()
		select {
		case <-ended:
		case <-timer.C: // a Start that does not return blocks the shutdown of its extension
			s.log.Warn("shutdown took too long, exiting anyway", "grace", grace)
		}
	})
	<-s.done
}

// closeSlack is how long Close waits beyond the grace.
const closeSlack = 100 * time.Millisecond

// goneGrace is the grace of extensions whose kernel has ended. It is short, since
// nothing that they do can be recorded.
const goneGrace = 400 * time.Millisecond

// kernelGone shuts down all extensions because the kernel has ended.
func (s *Server) kernelGone(reason string) {
	s.log.Debug("the kernel has ended", "reason", reason)
	for _, x := range s.instances {
		x.interrupt()
	}
	s.Close(goneGrace)
}

// closeIfIdle closes the server after closeDelay if no extension is active.
func (s *Server) closeIfIdle() {
	for _, x := range s.instances {
		if x.active() {
			return
		}
	}
	time.AfterFunc(closeDelay, func() {
		for _, x := range s.instances {
			if x.active() { // restarted meanwhile
				return
			}
		}
		s.Close(0)
	})
}

// closeDelay leaves time to send the answer to Shutdown, and for the kernel to stop
// the process itself.
const closeDelay = 500 * time.Millisecond

// instance returns the extension that a request names.
func (s *Server) instance(ctx context.Context) (*instance, error) {
	var id string
	if values := metadata.ValueFromIncomingContext(ctx, contract.ExtensionHeader); len(values) > 0 {
		id = values[0]
	}
	switch {
	case s.only != nil && (id == "" || s.only.id() == "" || id == s.only.id()):
		return s.only, nil
	case id == "":
		return nil, fmt.Errorf("this process serves %s: the request must name one in %s: %w",
			s.names(), contract.ExtensionHeader, contract.ErrInvalid)
	}
	if x := s.instances[id]; x != nil {
		return x, nil
	}
	return nil, fmt.Errorf("this process serves %s, not %s: %w", s.names(), id, contract.ErrNotFound)
}

func (s *Server) names() string {
	var names []string
	for id, x := range s.instances {
		if id == "" {
			id = x.id()
		}
		names = append(names, id)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// activation returns the activation of the extension that a request names.
func (s *Server) activation(ctx context.Context) (*activation, error) {
	x, err := s.instance(ctx)
	if err != nil {
		return nil, err
	}
	return x.current()
}

// connections counts the kernel's connections. When the last one ends, the kernel has
// ended.
type connections Server

func (c *connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (c *connections) HandleRPC(context.Context, stats.RPCStats)                         {}
func (c *connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (c *connections) HandleConn(_ context.Context, e stats.ConnStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.(type) {
	case *stats.ConnBegin:
		c.connections++
	case *stats.ConnEnd:
		if c.connections--; c.connections == 0 {
			go (*Server)(c).kernelGone("last connection closed") //nolint:contextcheck // the connection has no context
		}
	}
}

// connected reports whether the kernel has a connection.
func (s *Server) connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections > 0
}
