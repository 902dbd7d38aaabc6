package sdk

import (
	"context"
	"net"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
)

// Local serves an extension within the program that runs the kernel: it is the
// Serve of its specification there. Each call serves a new start, until ctx ends or
// the kernel has shut the extension down.
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
