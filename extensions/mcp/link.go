package mcp

import (
	"context"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/contract/mcpfile"
)

// link is a way to a server: the transport of one session.
type link interface {
	mcp.Transport
	// Done is closed when the server has ended. It never is for a server on another machine.
	Done() <-chan struct{}
	// Reason says why it ended; empty: unknown.
	Reason() string
	// End ends it within the grace. It can be called more than once.
	End(grace time.Duration, reason string)
}

// connector opens a way to a server.
type connector func(ctx context.Context, s *server) (link, error)

// connect opens a way to a server by its transport.
func connect(ctx context.Context, s *server) (link, error) {
	switch s.Transport {
	case mcpfile.Stdio:
		return startProcess(ctx, s.Launch, s.e.setup.Confine, s.e.log.Named(s.ID))
	case mcpfile.HTTP:
		return openHTTP(s)
	}
	return nil, fmt.Errorf("the transport %s is not supported", s.Transport)
}
