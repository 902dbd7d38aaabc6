package sdk

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// dial connects to the kernel's services as Init describes them. lost is called
// when a connection that was up is not any more; closing it is no loss.
func dial(ctx context.Context, init *extensionv1.InitRequest, lost func()) (*grpc.ClientConn, error) {
	token := init.GetKernelToken()
	conn, err := grpc.NewClient(init.GetKernelAddress(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithStaticStreamWindowSize(contract.StreamWindow),
		grpc.WithStaticConnWindowSize(contract.ConnWindow),
		grpc.WithReadBufferSize(16<<10), // a process may have many
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(contract.MaxMessage),
			grpc.MaxCallSendMsgSize(contract.MaxMessage)),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return invoke(metadata.AppendToOutgoingContext(ctx, contract.TokenHeader, token), method, req, reply, cc, opts...)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return open(metadata.AppendToOutgoingContext(ctx, contract.TokenHeader, token), desc, cc, method, opts...)
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("kernel address %q: %w: %w", init.GetKernelAddress(), contract.ErrInvalid, err)
	}
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if state == connectivity.TransientFailure || !conn.WaitForStateChange(ctx, state) {
			_ = conn.Close()
			return nil, fmt.Errorf("connect to the kernel at %q: %w", strings.TrimSpace(init.GetKernelAddress()), contract.ErrGone)
		}
	}
	go func() { //nolint:gosec // it watches the connection, which outlives Init
		conn.WaitForStateChange(context.Background(), connectivity.Ready)
		if conn.GetState() != connectivity.Shutdown {
			lost()
		}
	}()
	return conn, nil
}
