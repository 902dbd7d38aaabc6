// Package mcpclients is the part of the web channel that serves MCP clients over streamable
// HTTP, at /mcp: what `switchboard mcp` serves over stdio.
//
// # Promises
//
// A request is one of the MCP client that the token's scope names (mcp:<client>), and may do
// what mcp.clients of config.yaml grants that client; see package sdk/mcpserver. Only tokens of
// the owner get in: a client acts for the person whom config.yaml names.
package mcpclients

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/sdk/mcpserver"
)

// Options are what the part needs. All must be set.
type Options struct {
	Closing context.Context //nolint:containedctx // ends when the extension begins to stop
	Kernel  *admin.Client
	Version string // of this program
	Log     hclog.Logger
}

// served are the clients that have come, by name.
type served struct {
	Options
	mu  sync.Mutex
	all map[string]http.Handler
}

// Register adds the route.
func Register(mux *http.ServeMux, o Options) {
	s := &served{Options: o, all: map[string]http.Handler{}}
	mux.HandleFunc(door.MCPPath, s.serve)
}

func (s *served) serve(w http.ResponseWriter, r *http.Request) {
	name := door.From(r.Context()).MCPClient()
	if name == "" {
		http.Error(w, "this needs a token of an MCP client: `switchboard tokens create NAME --scope mcp:CLIENT`, where "+
			"CLIENT is one of mcp.clients in config.yaml", http.StatusForbidden)
		return
	}
	s.handler(name).ServeHTTP(w, r)
}

// handler returns that of a client. There are no more of them than tokens were made.
func (s *served) handler(name string) http.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[name]
	if h == nil {
		h = mcpserver.New(mcpserver.Options{
			Client: name, Version: s.Version, Log: slog.New(toLog{s.Log.With("client", name)}),
			Dial: func(context.Context) (*admin.Client, error) { return s.Kernel, nil },
		}).Handler(s.Closing)
		s.all[name] = h
	}
	return h
}

// toLog passes messages on to the log of the extension.
type toLog struct{ log hclog.Logger }

// Enabled implements slog.Handler.
func (toLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (t toLog) Handle(_ context.Context, r slog.Record) error {
	t.log.Warn(r.Message)
	return nil
}

// WithAttrs implements slog.Handler.
func (t toLog) WithAttrs([]slog.Attr) slog.Handler { return t }

// WithGroup implements slog.Handler.
func (t toLog) WithGroup(string) slog.Handler { return t }
