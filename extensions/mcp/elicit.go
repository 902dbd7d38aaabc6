package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// elicit answers a question of a server.
func (s *server) elicit(context.Context, *session, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: "decline"}, nil
}
