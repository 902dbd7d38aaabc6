package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/sdk/mcpserver"
)

func newMCPCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "mcp", Short: "Serve Switchboard to an MCP client over stdio", Args: cobra.NoArgs,
		Long: "Serves Switchboard's channels, schedules, memory and tasks to an MCP client, such as Claude Desktop or\n" +
			"VS Code, over the standard streams. The client starts this command.\n\n" +
			"config.yaml says which clients there are and which tools each may call:\n\n" +
			"  mcp: {clients: {claude: {tools: [core/list_channels, core/send_to_channel, memory/*, scheduler/*]}}}",
		Example: "  switchboard mcp --client claude",
	}
	c.AddCommand(newMCPLogin())
	client := c.Flags().String("client", "", "the client's name in mcp.clients of config.yaml (default: the only one)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		home, err := findHome()
		if err != nil {
			return err
		}
		s := mcpserver.New(mcpserver.Options{
			Client: *client, Version: version,
			Dial: func(ctx context.Context) (*admin.Client, error) { return dial(ctx, home) },
			Log:  slog.New(toPeople{}),
		})
		if err := s.Serve(c.Context(), mcpserver.Stdio(os.Stdin, os.Stdout)); err != nil {
			return fmt.Errorf("serve the MCP client: %w", err)
		}
		return nil
	}
	return c
}

// toPeople logs to stderr, which MCP clients show their users.
type toPeople struct{}

// Enabled implements slog.Handler.
func (toPeople) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (toPeople) Handle(_ context.Context, r slog.Record) error {
	_, err := fmt.Fprintln(safeText{w: os.Stderr}, "switchboard:", message(errors.New(r.Message)))
	return err
}

// WithAttrs implements slog.Handler.
func (t toPeople) WithAttrs([]slog.Attr) slog.Handler { return t }

// WithGroup implements slog.Handler.
func (t toPeople) WithGroup(string) slog.Handler { return t }
