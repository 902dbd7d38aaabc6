package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/extensions/mcp"
	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// serverOf returns the MCP server in the id of an extension such as mcp/github.
func serverOf(id string) (server string, ok bool) { return strings.CutPrefix(id, "mcp/") }

// decideServer allows or refuses an MCP server.
func decideServer(c *cobra.Command, k *admin.Client, verb, server string, asJSON bool) error {
	err := runTool(c, k, "mcp/"+verb, map[string]any{"server": server}, asJSON)
	if err == nil {
		return nil
	}
	return hinted(noServers(err), "switchboard extensions servers")
}

// readServers returns the MCP servers; none if the extension that connects them does not
// run.
func readServers(
	ctx context.Context, k *admin.Client, extensions []*adminv1.Extension,
) ([]*mcpfile.Status, error) {
	if !slices.ContainsFunc(extensions, func(x *adminv1.Extension) bool {
		return x.Id == mcp.ID && x.State == "active"
	}) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, serversTimeout)
	defer cancel()
	all, err := callTool[[]*mcpfile.Status](ctx, k, "mcp/status", map[string]any{})
	if err != nil {
		return nil, fmt.Errorf("list the MCP servers: %w", err)
	}
	return all, nil
}

// serversTimeout bounds how long a listing waits for the extension.
const serversTimeout = 5 * time.Second

// serverRow is an MCP server as a row among the extensions.
func serverRow(s *mcpfile.Status) *adminv1.Extension {
	x := &adminv1.Extension{
		Id: mcp.ID + "/" + s.ID, Name: s.Name, Kinds: []string{"MCP server"}, LastError: s.Error,
		State: strings.ReplaceAll(s.State, " ", "_"),
	}
	switch {
	case s.Consent == mcpfile.Waiting:
		x.State, x.Detail = stateNotAllowed, fmt.Sprintf("allow it: `switchboard extensions allow %s`", x.Id)
	case s.Consent == mcpfile.Refused:
		x.State, x.Detail = stateNotAllowed, "you refused it"
	case s.Broken:
		x.Detail = s.Error
	}
	return x
}

// brokenServers are the rows of the servers that do not start.
func brokenServers(all []*mcpfile.Status) (rows []*adminv1.Extension) {
	for _, s := range all {
		if s.Broken && s.Consent == mcpfile.Allowed {
			rows = append(rows, serverRow(s))
		}
	}
	return rows
}

// servers reports the MCP servers that do not start.
func (d *diagnosis) servers(ctx context.Context, k *admin.Client, extensions []*adminv1.Extension) {
	all, err := readServers(ctx, k, extensions)
	if err != nil {
		d.add("Extensions", levelWarning, "`switchboard logs mcp` may say why", "%s", message(err))
	}
	for _, x := range brokenServers(all) {
		hint := fmt.Sprintf("`switchboard logs mcp` may say more; `switchboard extensions restart %s` starts it again", x.Id)
		d.add("Extensions", levelError, hint, "the MCP server %s doesn't start: %s", x.Name, x.Detail)
	}
}

// noServers explains an error of the extension that connects the servers: without any it
// does not run.
func noServers(err error) error {
	h, homeErr := findHome()
	if homeErr != nil {
		return err
	}
	switch seen, inspectErr := inspect(h); {
	case inspectErr != nil:
	case seen.ServersErr != nil:
		return seen.ServersErr
	case slices.ContainsFunc(seen.Entries, func(e home.InspectedEntry) bool {
		return e.ID == mcp.ID && e.Disabled != nil
	}):
		return fmt.Errorf("there are none in %s: put the file that you use with Claude Desktop or VS Code there", h.Servers())
	}
	return err
}

func newExtensionsServers() *cobra.Command {
	c := &cobra.Command{
		Use: "servers", Short: "List the MCP servers of mcp.json", Args: cobra.NoArgs,
		Long: "Lists the servers of mcp.json: whether you allowed them, the state of their processes, and how many\n" +
			"tools they have. --json lists the tools, what each server may use, and what was left out.",
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("list the MCP servers", func(c *cobra.Command, k *admin.Client, _ []string) error {
		all, err := callTool[[]*mcpfile.Status](c.Context(), k, "mcp/status", map[string]any{})
		if err != nil {
			return noServers(err)
		}
		return list(c, *asJSON, all, "ID CONSENT STATE TOOLS PROMPTS DETAIL | PROMPTS", "There are no MCP servers.",
			func(_ *printer, s *mcpfile.Status) []cell {
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
