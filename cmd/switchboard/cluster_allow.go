package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/home/pin"
	"github.com/switchboard-run/switchboard/manifests"
)

func newClusterAllow() *cobra.Command {
	return &cobra.Command{
		Use: "allow EXTENSION", Args: cobra.ExactArgs(1),
		Short: "Let this machine run an extension's program as it is now",
		Long: "The machines of a cluster share manifests, not programs. A program runs on a machine only if its files,\n" +
			"and the command that starts it, are those that were allowed there: by `switchboard extensions install`, or by\n" +
			"this command, which prints the command line. It works with and without a running kernel.",
		Example: "  scp -r kitchen:.local/share/switchboard/extensions/jotter ~/.local/share/switchboard/extensions/\n" +
			"  switchboard cluster allow jotter",
		RunE: func(c *cobra.Command, args []string) error {
			h, err := findHome()
			if err != nil {
				return err
			}
			dir, err := manifests.OpenDir(h.Extensions())
			if err != nil {
				return err
			}
			all := dir.Entries()
			i := slices.IndexFunc(all, func(e manifests.Entry) bool { return e.ID == args[0] })
			switch {
			case i < 0:
				return fmt.Errorf("allow %s: %s has no such extension", args[0], h.Extensions())
			case all[i].Manifest == nil:
				return fmt.Errorf("allow %s: %w", args[0], all[i].Err)
			case all[i].Manifest.Run.Command == "":
				return fmt.Errorf("allow %s: it has no program of its own", args[0])
			}
			m := all[i].Manifest
			if err := executable(m.Executable()); err != nil {
				return fmt.Errorf("allow %s: %w", args[0], err)
			}
			if err := pin.Allow(c.Context(), h, m); err != nil {
				return err
			}
			printerOf(c).line("This machine runs %s as it is now: %q", m.ID, append([]string{m.Run.Command}, m.Run.Args...))
			return nil
		},
	}
}
