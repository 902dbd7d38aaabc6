package sdk

import (
	"context"
	"net"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
)

// Local serves an extension inside the program that runs the kernel: assign it to
// Serve of the extension's Spec. Each call serves one start, until ctx ends or the
// kernel has shut the extension down.
func Local(log hclog.Logger, ext Extension) func(ctx context.Context, l net.Listener) error {
	return func(ctx context.Context, l net.Listener) error {
		server, err := NewServer(log, ext)
		if err != nil {
			return err
		}
		g := grpc.NewServer(server.Options()...)
		server.Register(g)
		served := make(chan error, 1)
		go func() { served <- g.Serve(l) }()
		select {
		case err = <-served:
		case <-ctx.Done():
		case <-server.Done():
		}
		server.Close(goneGrace)
		g.Stop()
		return err
	}
}
