package sdk

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// pluginGlue is a Server as go-plugin knows it.
type pluginGlue struct {
	plugin.NetRPCUnsupportedPlugin
	server *Server

	mu      sync.Mutex
	grpc    *grpc.Server
	stopped bool
}

var _ plugin.GRPCPlugin = (*pluginGlue)(nil)

func (g *pluginGlue) newServer(options []grpc.ServerOption) *grpc.Server {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grpc = grpc.NewServer(append(options, g.server.Options()...)...)
	if g.stopped {
		g.grpc.Stop()
	}
	return g.grpc
}

// stop ends the gRPC server, and plugin.Serve with it.
func (g *pluginGlue) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	if g.grpc != nil {
		g.grpc.Stop()
	}
}

// GRPCServer registers the contract's services.
func (g *pluginGlue) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	g.server.Register(s)
	return nil
}

// GRPCClient is the kernel's side, which is not part of the SDK.
func (g *pluginGlue) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("the SDK serves extensions only")
}
