// Package admin is the owner's side of a kernel for clients: the connection to its
// admin services (contract/adminv1), and functions that turn the rows that they serve
// into statuses, listings, traces, sums and JSON.
//
// The functions need an adminv1.ReadClient only. An extension whose manifest says
// "permissions: {admin: read}" gets one from Reader. Errors wrap the sentinels of
// package contract.
package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
)

// ErrNotRunning says that no kernel is running.
var ErrNotRunning = errors.New("no kernel is running")

// Client is a connection to a kernel. It is safe for concurrent use.
type Client struct {
	adminv1.ReadClient
	adminv1.ManageClient
	adminv1.InstallationClient
	conn *grpc.ClientConn
}

// Dial connects to the kernel that listens on a control socket, with the token
// in a file. The error wraps ErrNotRunning if no kernel listens there.
func Dial(ctx context.Context, socket, tokenFile string) (*Client, error) {
	var d net.Dialer
	dialed, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, ErrNotRunning
		}
		return nil, fmt.Errorf("connect to the kernel at %s: %w", socket, err)
	}
	var first atomic.Pointer[net.Conn] // the client uses it before it dials again
	first.Store(&dialed)
	conn, err := grpc.NewClient("passthrough:///kernel",
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			if c := first.Swap(nil); c != nil {
				return *c, nil
			}
			return d.DialContext(ctx, "unix", socket)
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(contract.MaxMessage)),
		grpc.WithUnaryInterceptor(func(
			ctx context.Context, method string, q, answer any, c *grpc.ClientConn, invoke grpc.UnaryInvoker,
			o ...grpc.CallOption,
		) error {
			ctx, err := withToken(ctx, tokenFile)
			if err != nil {
				return err
			}
			return invoke(ctx, method, q, answer, c, o...)
		}),
		grpc.WithStreamInterceptor(func(
			ctx context.Context, desc *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer,
			o ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			ctx, err := withToken(ctx, tokenFile)
			if err != nil {
				return nil, err
			}
			return open(ctx, desc, c, method, o...)
		}))
	if err != nil {
		_ = dialed.Close()
		return nil, fmt.Errorf("connect to the kernel at %s: %w", socket, err)
	}
	all := Over(conn)
	all.conn = conn
	return all, nil
}

// Close ends the connection that Dial made.
func (c *Client) Close() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// withToken reads the token for each request: a kernel that was restarted has
// another one.
func withToken(ctx context.Context, file string) (context.Context, error) {
	token, err := os.ReadFile(file)
	if err != nil {
		return ctx, fmt.Errorf("read the control token: %w", err)
	}
	return metadata.AppendToOutgoingContext(ctx, contract.TokenHeader, strings.TrimSpace(string(token))), nil
}

// fromStatus is an error as package contract names it.
func fromStatus(ctx context.Context, err error) error {
	switch s, ok := status.FromError(err); {
	case err == nil || errors.Is(err, io.EOF):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case ok && s.Code() == codes.Unimplemented:
		return fmt.Errorf("%w: the kernel has another version than this program (%s); restart it",
			contract.ErrNotFound, s.Message())
	case ok && s.Code() == codes.Unavailable && !strings.HasPrefix(s.Message(), contract.ErrGone.Error()):
		// It is the transport's, not the kernel's.
		return fmt.Errorf("%w: the kernel has stopped or doesn't answer (%s)", contract.ErrGone, s.Message())
	}
	return contract.FromStatus(err)
}

// Reader returns a client of an extension whose manifest says
// "permissions: {admin: read}"; conn is sdk.Services.Conn. Its errors are those of
// package contract.
func Reader(conn grpc.ClientConnInterface) adminv1.ReadClient {
	return adminv1.NewReadClient(mapped{conn})
}

// Manager returns a client of a built-in extension whose manifest says
// "permissions: {admin: manage}"; see Reader.
func Manager(conn grpc.ClientConnInterface) adminv1.ManageClient {
	return adminv1.NewManageClient(mapped{conn})
}

// Over returns all clients of a built-in extension whose manifest says
// "permissions: {admin: manage}"; see Reader.
func Over(conn grpc.ClientConnInterface) *Client {
	return &Client{
		ReadClient: Reader(conn), ManageClient: Manager(conn),
		InstallationClient: adminv1.NewInstallationClient(mapped{conn}),
	}
}

// mapped is a connection whose errors are those of package contract.
type mapped struct{ grpc.ClientConnInterface }

// Invoke implements grpc.ClientConnInterface.
func (m mapped) Invoke(ctx context.Context, method string, q, answer any, o ...grpc.CallOption) error {
	return fromStatus(ctx, m.ClientConnInterface.Invoke(ctx, method, q, answer, o...))
}

// NewStream implements grpc.ClientConnInterface.
func (m mapped) NewStream(
	ctx context.Context, d *grpc.StreamDesc, method string, o ...grpc.CallOption,
) (grpc.ClientStream, error) {
	s, err := m.ClientConnInterface.NewStream(ctx, d, method, o...)
	return stream{s, ctx}, fromStatus(ctx, err)
}

// stream maps the errors of a stream. Its own context ends with it; caller is
// that of the request.
type stream struct {
	grpc.ClientStream
	caller context.Context //nolint:containedctx // it lives as long as the stream
}

// RecvMsg implements grpc.ClientStream.
func (s stream) RecvMsg(m any) error {
	err := fromStatus(s.caller, s.ClientStream.RecvMsg(m))
	if errors.Is(err, contract.ErrGone) {
		return fmt.Errorf("%w: the kernel has stopped", contract.ErrGone)
	}
	return err
}

// all reads a stream to its end.
func all[T any](s grpc.ServerStreamingClient[T], err error) (rows []*T, _ error) {
	if err != nil {
		return nil, err
	}
	for {
		switch row, err := s.Recv(); {
		case errors.Is(err, io.EOF):
			return rows, nil
		case err != nil:
			return rows, err
		default:
			rows = append(rows, row)
		}
	}
}
