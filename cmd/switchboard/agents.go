package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newAgentsCommand() *cobra.Command {
	return group("agents", "Agents and their state", newAgentsList())
}

func newAgentsList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the agents", Args: cobra.NoArgs}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("list the agents", func(c *cobra.Command, k *admin.Client, _ []string) error {
		dir, err := k.Directory(c.Context(), &adminv1.DirectoryRequest{})
		if err != nil {
			return err
		}
		return list(c, *asJSON, admin.Agents(dir), "ID NAME STATE MODEL TOOLS MEMORY DESCRIPTION | MEMORY TOOLS MODEL NAME",
			"There are no agents: all of them are disabled in config.yaml.",
			func(_ *printer, x admin.Agent) []cell {
				id, is := x.ID, state(x.State)
				if x.Default {
					id += " (default)"
				}
				if !x.Enabled {
					is = state("disabled")
				}
				return []cell{text(id), text(x.Name), is, text(dash(x.Model)), text(count(len(x.Tools), "tool")),
					text(dash(strings.Join(x.Memory, " "))), text(shorten(x.Description, 70))}
			})
	})
	return c
}
