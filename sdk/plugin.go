package sdk

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// pluginAdapter makes a Server a go-plugin plugin.
type pluginAdapter struct {
	plugin.NetRPCUnsupportedPlugin
	server *Server

	mu      sync.Mutex
	grpc    *grpc.Server
	stopped bool
}

var _ plugin.GRPCPlugin = (*pluginAdapter)(nil)

func (g *pluginAdapter) newServer(options []grpc.ServerOption) *grpc.Server {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grpc = grpc.NewServer(append(options, g.server.Options()...)...)
	if g.stopped {
		g.grpc.Stop()
	}
	return g.grpc
}

// stop stops the gRPC server, which ends plugin.Serve.
func (g *pluginAdapter) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	if g.grpc != nil {
		g.grpc.Stop()
	}
}

// GRPCServer registers the contract's services.
func (g *pluginAdapter) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	g.server.Register(s)
	return nil
}

// GRPCClient fails: the SDK has no client side.
func (g *pluginAdapter) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("the SDK serves extensions only")
}
