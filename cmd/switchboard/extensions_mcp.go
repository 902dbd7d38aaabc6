package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/sdk/admin"
)

// serverOf returns the MCP server in the id of an extension such as mcp/github.
func serverOf(id string) (server string, ok bool) { return strings.CutPrefix(id, "mcp/") }

// decideServer allows or refuses an MCP server.
func decideServer(c *cobra.Command, k *admin.Client, verb, server string, asJSON bool) error {
	return hinted(runTool(c, k, "mcp/"+verb, map[string]any{"server": server}, asJSON), "switchboard extensions servers")
}

// mcpServer is what the extension says of one server.
type mcpServer struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Transport   string   `json:"transport"`
	Command     string   `json:"command,omitempty"`
	URL         string   `json:"url,omitempty"`
	Consent     string   `json:"consent"`
	By          string   `json:"by,omitempty"`
	State       string   `json:"state"`
	Error       string   `json:"error,omitempty"`
	Version     string   `json:"protocol,omitempty"`
	Title       string   `json:"title,omitempty"`
	Tools       []string `json:"tools"`
	Prompts     []string `json:"prompts,omitempty"`
	Problems    []string `json:"problems,omitempty"`
	Permissions []string `json:"permissions,omitempty"`
}

func newExtensionsServers() *cobra.Command {
	c := &cobra.Command{
		Use: "servers", Short: "List the MCP servers of mcp.json", Args: cobra.NoArgs,
		Long: "Lists the servers of mcp.json: whether you allowed them, the state of their processes, and how many\n" +
			"tools they have. --json lists the tools, what each server may use, and what was left out.",
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("list the MCP servers", func(c *cobra.Command, k *admin.Client, _ []string) error {
		all, err := callTool[[]*mcpServer](c.Context(), k, "mcp/status", map[string]any{})
		if err != nil {
			return err
		}
		return list(c, *asJSON, all, "ID CONSENT STATE TOOLS PROMPTS DETAIL | PROMPTS", "There are no MCP servers.",
			func(_ *printer, s *mcpServer) []cell {
				detail := append([]string{}, s.Problems...)
				if s.Error != "" {
					detail = append([]string{s.Error}, detail...)
				}
				return []cell{
					text("mcp/" + s.ID), text(s.Consent), state(s.State), text(fmt.Sprint(len(s.Tools))),
					text(fmt.Sprint(len(s.Prompts))), text(strings.Join(detail, "; ")),
				}
			})
	})
	return c
}
