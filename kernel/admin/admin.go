// Package admin serves adminv1: what the owner sees of a running kernel and does
// to it. The command line and every other client of the owner use it.
//
// # Who may use it
//
// Serve serves the owner on the control socket: connections of the same user
// only, and each request carries the token of this run. A caller that is
// granted less goes through the same interceptors with its own Grant: Read
// reaches the service of that name alone, None reaches nothing.
//
// # Promises
//
// A change is one commit of the kernel, durable when the answer comes. A request
// that ends early may still have had its effect. A stream of events that follows
// loses none while it lasts and repeats none; a slow reader of it holds up
// nothing. Messages only gain fields.
package admin

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/ownuser"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/models"
	"github.com/switchboard-run/switchboard/kernel/router"
	"github.com/switchboard-run/switchboard/kernel/session"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/kernel/tools"
)

// Installation is what only the program around the kernel knows.
type Installation interface {
	// Describe fills in of a status what the kernel does not know: version, home,
	// problems, hints, backups, the sandbox of this system.
	Describe(s *adminv1.Status)
	// Extensions are all that there are, by id. Those that do not take part are
	// Disabled or Invalid; the others have no state yet.
	Extensions() []*adminv1.Extension
	// Sandbox says what limits the process of an extension.
	Sandbox(id string, pid int) *adminv1.Sandbox
	// Damage explains an error of the store, or, for nil, what was met of a damaged
	// store so far; empty: no damage.
	Damage(err error) string
	// MakeBackup makes a backup and describes it in JSON.
	MakeBackup(ctx context.Context, file string, secrets bool) (info []byte, err error)
}

// States of an extension that does not take part.
const (
	Disabled = "disabled" // by the configuration
	Invalid  = "invalid"  // its files, or those of what it requires, are wrong
)

// Service serves both services of adminv1. All fields must be set.
type Service struct {
	adminv1.UnimplementedReadServer
	adminv1.UnimplementedManageServer
	Installation
	Started    time.Time
	StoreBytes func() int64
	Bus        *bus.Bus
	Store      *session.Store
	Known      *directory.Directory
	Router     *router.MessageRouter
	Tools      *tools.Runner
	Ledger     *models.Ledger
	Supervisor *supervisor.Supervisor
}

// Grant is what a caller may do.
type Grant int

// Grants; each includes those before it.
const (
	None Grant = iota
	Read
	Manage
)

func (g Grant) allows(method string) error {
	need := Manage
	if strings.HasPrefix(method, "/"+adminv1.Read_ServiceDesc.ServiceName+"/") {
		need = Read
	}
	if g < need {
		return fmt.Errorf("%w: %s needs the grant admin: %s", contract.ErrDenied, method, [...]string{Read: "read", Manage: "manage"}[need])
	}
	return nil
}

// Server is a gRPC server of the service; grant says what the caller of a
// request may do. Streams end with ctx.
func (s *Service) Server(ctx context.Context, grant func(context.Context) (Grant, error)) *grpc.Server {
	check := func(ctx context.Context, method string) error {
		g, err := grant(ctx)
		if err == nil {
			err = g.allows(method)
		}
		return err
	}
	server := grpc.NewServer(grpc.Creds(caller{insecure.NewCredentials()}), grpc.MaxRecvMsgSize(contract.MaxMessage),
		grpc.ConnectionTimeout(handshakeTime), grpc.MaxHeaderListSize(16<<10), grpc.WaitForHandlers(true),
		grpc.UnaryInterceptor(func(ctx context.Context, q any, i *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if err := check(ctx, i.FullMethod); err != nil {
				return nil, contract.ToStatus(err)
			}
			answer, err := next(ctx, q)
			return answer, contract.ToStatus(err)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, i *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			if err := check(stream.Context(), i.FullMethod); err != nil {
				return contract.ToStatus(err)
			}
			until, cancel := context.WithCancelCause(stream.Context())
			defer context.AfterFunc(ctx, func() { cancel(errStopped) })()
			return contract.ToStatus(next(srv, bounded{stream, until}))
		}))
	adminv1.RegisterReadServer(server, s)
	adminv1.RegisterManageServer(server, s)
	return server
}

var errStopped = fmt.Errorf("%w: the kernel has stopped", contract.ErrGone)

// bounded is a stream that ends before its caller does.
type bounded struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // the stream's own
}

// Context implements grpc.ServerStream.
func (b bounded) Context() context.Context { return b.ctx }

const (
	handshakeTime = 10 * time.Second
	lastAnswers   = time.Second // after ctx has ended
)

// Serve serves the owner until ctx ends. It closes the listener. A request is
// the owner's if it carries the token in contract.TokenHeader.
func (s *Service) Serve(ctx context.Context, l *ownuser.Listener, token string) error {
	server := s.Server(ctx, func(ctx context.Context) (Grant, error) {
		said := strings.Join(metadata.ValueFromIncomingContext(ctx, contract.TokenHeader), "")
		if subtle.ConstantTimeCompare([]byte(said), []byte(token)) != 1 {
			return None, fmt.Errorf("%w: the request lacks the token of this kernel", contract.ErrStale)
		}
		if p, ok := peer.FromContext(ctx); ok {
			if c, ok := p.AuthInfo.(connection); ok {
				c.Authenticated()
			}
		}
		return Manage, nil
	})
	stop := context.AfterFunc(ctx, func() {
		last := time.AfterFunc(lastAnswers, server.Stop)
		server.GracefulStop()
		last.Stop()
	})
	defer stop()
	if err := server.Serve(l); err != nil {
		return fmt.Errorf("serve the owner: %w", err)
	}
	return nil
}

// caller is a transport without encryption that lets requests know the
// connection that they came by.
type caller struct {
	credentials.TransportCredentials
}

type connection struct {
	credentials.CommonAuthInfo
	*ownuser.Conn
}

// AuthType implements credentials.AuthInfo.
func (connection) AuthType() string { return "insecure" }

// ServerHandshake implements credentials.TransportCredentials.
func (caller) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if own, ok := c.(*ownuser.Conn); ok {
		return c, connection{credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}, own}, nil
	}
	return c, nil, nil
}
