package contract

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// DialOptions are those of every connection between a kernel and an extension.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithStaticStreamWindowSize(StreamWindow), grpc.WithStaticConnWindowSize(ConnWindow),
	}
}

// ConnTo returns a connection whose requests are for one extension of a process that may
// serve several.
func ConnTo(extension string, conn grpc.ClientConnInterface) grpc.ClientConnInterface {
	return addressed{conn, extension}
}

type addressed struct {
	grpc.ClientConnInterface
	extension string
}

// Invoke implements grpc.ClientConnInterface.
func (c addressed) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	ctx = metadata.AppendToOutgoingContext(ctx, ExtensionHeader, c.extension)
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

// NewStream implements grpc.ClientConnInterface.
func (c addressed) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, ExtensionHeader, c.extension)
	return c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
}
