package main

import (
	"context"
	"errors"
	"fmt"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newExtensionsAllow() *cobra.Command {
	c := &cobra.Command{
		Use: "allow ID", Short: "Allow what an extension asks for", Args: cobra.ExactArgs(1),
		ValidArgsFunction: first(extensionIDs),
		Long: "Allows an extension what it asks for beyond itself, and starts it. The output shows what that is. If a\n" +
			"later version asks for more, it is asked about again, and the earlier one stays in effect until then.\n" +
			"So are tools that it describes later or in another way: agents don't get them until you allow them.\n" +
			"On a terminal you see first what it asks for, and say yes or no. It works with and without a running\n" +
			"kernel.",
		Example: "  switchboard extensions allow jotter\n  switchboard extensions allow jotter --tools\n" +
			"  switchboard extensions allow mcp/github   # an MCP server",
	}
	tools := c.Flags().Bool("tools", false, "also give its tools to the default agent")
	yes := c.Flags().BoolP("yes", "y", false, "do not ask")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if _, server := serverOf(args[0]); onTerminal() && !*yes && !*asJSON && !server {
			if err := confirmAsks(c, args[0]); err != nil {
				return err
			}
		}
		q := &adminv1.DecideRequest{Id: args[0], Allow: true, Tools: *tools}
		return decided(c, *asJSON, q, func(p *printer, x *adminv1.Extension) {
			p.line("%s is allowed to:", x.GetId())
			lines(p, x.GetConsent().GetAsks())
			if x.GetConsent().GetTools() {
				p.line("Its tools are given to the default agent.")
			} else if x.GetConsent().GetOffersTools() {
				p.faint(fmt.Sprintf("To give its tools to the default agent: switchboard extensions allow %s --tools", x.GetId()))
			}
		})
	}
	return c
}

// confirmAsks shows a person what an extension asks for that is not allowed, and returns
// errReported unless they say yes.
func confirmAsks(c *cobra.Command, id string) error {
	x := &installation{c: c, p: printerOf(c)}
	var err error
	if x.home, err = findHome(); err != nil {
		return x.said(err, "allow "+id)
	}
	found, err := x.look(id)
	if err != nil || len(found.More) == 0 {
		return x.said(err, "allow "+id)
	}
	x.lines(id+" asks for your permission to:", found.More)
	x.lines("Without asking, it:", found.Uses)
	return x.said(x.confirm("Allow it?", ""), "allow "+id)
}

func newExtensionsRefuse() *cobra.Command {
	c := &cobra.Command{
		Use: "refuse ID", Short: "Refuse what an extension asks for", Args: cobra.ExactArgs(1),
		ValidArgsFunction: first(extensionIDs),
		Long: "Refuses an extension what it asks for beyond itself, and stops it. If a new version asks for more, or has\n" +
			"new tools, it goes on with what it had; to refuse again stops that, too. Nothing is asked again unless it\n" +
			"asks for something else. It works with and without a running kernel.",
	}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return decided(c, *asJSON, &adminv1.DecideRequest{Id: args[0]}, func(p *printer, x *adminv1.Extension) {
			if x.GetConsent().GetOlder() {
				p.line("What %s asks for in addition is refused. It goes on with the permissions that it had.", x.GetId())
				p.faint(fmt.Sprintf("To stop that, too: switchboard extensions refuse %s", x.GetId()))
				return
			}
			p.line("%s is refused and doesn't run. It asked to:", x.GetId())
			lines(p, x.GetConsent().GetAsks())
		})
	}
	return c
}

func lines(p *printer, all []string) {
	for _, l := range all {
		p.line("  - %s", l)
	}
}

// decided makes a decision and shows it.
func decided(
	c *cobra.Command, asJSON bool, q *adminv1.DecideRequest, show func(*printer, *adminv1.Extension),
) error {
	action := "allow"
	if !q.GetAllow() {
		action = "refuse"
	}
	if server, ok := serverOf(q.GetId()); ok {
		return withKernel(action, func(c *cobra.Command, k *admin.Client, _ []string) error {
			return decideServer(c, k, action, server, asJSON)
		})(c, []string{q.GetId()})
	}
	q.By = decider()
	done, err := decide(c.Context(), q)
	if err != nil {
		return fmt.Errorf("%s %s: %w", action, q.GetId(), hinted(err, "switchboard extensions list"))
	}
	if asJSON {
		return printJSON(c, admin.JSON(done.GetExtension()).With("changed", done.GetChanged()))
	}
	show(printerOf(c), done.GetExtension())
	return nil
}

// decider names who decides on the command line.
func decider() string {
	if u, err := user.Current(); err == nil {
		return u.Username + ", on the command line"
	}
	return "the command line"
}

// decide makes a decision through the kernel, or without one in the files of the home.
func decide(ctx context.Context, q *adminv1.DecideRequest) (*adminv1.DecideResponse, error) {
	h, err := findHome()
	if err != nil {
		return nil, err
	}
	k, err := dial(ctx, h)
	switch {
	case err == nil:
		defer k.Close()
		return k.Decide(ctx, q)
	case !errors.Is(err, admin.ErrNotRunning) || !h.Exists():
		return nil, err
	}
	o, err := kernelOptions(h)
	if err != nil {
		return nil, err
	}
	return home.Decide(o, q)
}
