package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/cmd/switchboard/scaffold"
)

const goVersion = "1.26.0" // required by the module

func newExtensionsNew() *cobra.Command {
	c := &cobra.Command{
		Use: "new NAME", Short: "Create a small extension to begin with", Args: cobra.ExactArgs(1),
		Long: "Creates a directory with a small extension that works: a manifest, the code, a test, a README and a file\n" +
			"for CI. It is a channel (the default), with --tool a tool, with --agent an agent. The name is its id:\n" +
			"lower-case letters, digits and underscores.",
		Example: "  switchboard extensions new my_channel\n  switchboard extensions new dice --tool",
	}
	language := c.Flags().String("lang", "go", "language: "+strings.Join(scaffold.Languages, ", "))
	kinds := map[string]*bool{}
	for kind, what := range map[string]string{
		"channel": "a channel to talk to people (the default)", "tool": "a tool for agents",
		"agent": "an agent with tools of its own",
	} {
		kinds[kind] = c.Flags().Bool(kind, false, what)
	}
	replace := c.Flags().String("replace", "",
		"Go: build against this checkout of Switchboard (default: the one that this program was built from, if any)")
	c.RunE = func(c *cobra.Command, args []string) error {
		x := scaffold.Extension{ID: args[0], Language: *language, Kind: "channel", Version: version, Go: goVersion}
		given := 0
		for kind, wanted := range kinds {
			if *wanted {
				x.Kind = kind
				given++
			}
		}
		if given > 1 {
			return fmt.Errorf("create the extension %s: give one of --channel, --tool and --agent", args[0])
		}
		x.Checkout = scaffold.BuiltFrom()
		if *replace != "" {
			var err error
			if x.Checkout, err = filepath.Abs(*replace); err == nil {
				err = scaffold.Checkout(x.Checkout)
			}
			if err != nil {
				return fmt.Errorf("create the extension %s: --replace: %w", args[0], err)
			}
		}
		files, next, err := scaffold.Write(".", x)
		if err != nil {
			return fmt.Errorf("create the extension %s: %w", args[0], err)
		}
		p := printerOf(c)
		for _, f := range files {
			p.line("%s %s", p.paint(green, "✓"), f)
		}
		p.faint("Next: " + next)
		p.faint("While you write it: switchboard extensions dev .")
		return nil
	}
	return c
}
