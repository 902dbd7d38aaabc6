package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newPairingCommand() *cobra.Command {
	return group("pairing", "People who may talk to the assistant", newPairingList(), newPairingApprove(),
		newPairingRevoke(), newPairingClear())
}

func newPairingList() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List approved people, and requests for approval", Args: cobra.NoArgs,
		Long: "Lists the approved people of each channel, and the codes of people who wait for approval.\n" +
			"People in config.yaml (channels.<id>.allow_from) need no approval.",
	}
	asJSON := jsonFlag(c)
	all := c.Flags().Bool("all", false, "show every code that waits, not only the newest")
	c.RunE = withKernel("list the people", func(c *cobra.Command, k *admin.Client, _ []string) error {
		people, err := k.People(c.Context(), &adminv1.PeopleRequest{})
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c, people)
		}
		dir, err := k.Directory(c.Context(), &adminv1.DirectoryRequest{})
		if err != nil {
			return err
		}
		most := codesShown
		if *all {
			most = len(people.Waiting)
		}
		printerOf(c).people(people, admin.Channels(dir), most)
		return nil
	})
	return c
}

// codesShown is how many waiting codes a list shows: strangers can make many.
const codesShown = 20

// people prints the approved people and, newest first, at most so many waiting codes.
func (p *printer) people(people *adminv1.PeopleResponse, channels []admin.Channel, most int) {
	if len(people.Waiting) > 0 {
		p.line("Waiting for approval")
		var rows [][]cell
		slices.SortStableFunc(people.Waiting, func(a, b *adminv1.Pairing) int {
			return cmp.Compare(b.ExpiresAtUs, a.ExpiresAtUs)
		})
		shown := people.Waiting[:min(most, len(people.Waiting))]
		for _, w := range shown {
			rows = append(rows, []cell{{w.Code, yellow}, text(w.Channel), text(dash(w.Name)), text(w.UserId),
				text(humanize.Time(at(w.ExpiresAtUs)))})
		}
		p.table("CODE CHANNEL NAME USER EXPIRES", rows)
		if more := len(people.Waiting) - len(shown); more > 0 {
			p.line("%d older ones: `switchboard pairing list --all`, or `switchboard pairing clear`", more)
		}
		p.faint("Approve one with `switchboard pairing approve CODE`, if you know who it is.")
		p.line("")
	}
	var rows [][]cell
	for _, one := range people.Approved {
		role := text("")
		if one.Owner {
			role = text("owner")
		}
		rows = append(rows, []cell{text(one.Channel), text(dash(one.Name)), text(one.UserId), role,
			text(ago(at(one.ApprovedAtUs)))})
	}
	for _, x := range channels {
		if len(x.AllowFrom) > 0 {
			rows = append(rows, []cell{text(x.ID), text("by config.yaml"), text(strings.Join(x.AllowFrom, ", ")), text(""),
				text("-")})
		}
	}
	if len(rows) == 0 {
		p.line("No one is approved yet.")
		p.faint("People who write to a channel for the first time get a code. It is listed here.")
		return
	}
	p.line("Approved")
	p.table("CHANNEL NAME USER ROLE SINCE", rows)
}

func newPairingApprove() *cobra.Command {
	c := &cobra.Command{
		Use: "approve CODE", Short: "Approve a person by their code", Args: cobra.ExactArgs(1),
		Long: "Approves the account with the code. The first one on a channel is yours, the owner's: notices and\n" +
			"reminders go there, and it sees what is yours. With --role, it is a person of its own; the other\n" +
			"accounts on the channel are, too, without it.",
		Example:           "  switchboard pairing approve ABCD2345\n  switchboard pairing approve ABCD2345 --role guest",
		ValidArgsFunction: first(pairingCodes),
	}
	asJSON := jsonFlag(c)
	role := c.Flags().String("role", "", "approve another person, with a role: member, guest or owner")
	if err := c.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(rolesApproved,
		cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
	c.RunE = withKernel("approve", func(c *cobra.Command, k *admin.Client, args []string) error {
		if c.Flags().Changed("role") && !slices.Contains(rolesApproved, *role) {
			return fmt.Errorf("--role %s: give one of %s", *role, strings.Join(rolesApproved, ", "))
		}
		one, err := k.Approve(c.Context(), &adminv1.ApproveRequest{Code: args[0], Role: *role})
		if err != nil {
			return hinted(err, "switchboard pairing list")
		}
		if *asJSON {
			return printJSON(c, one)
		}
		return printerOf(c).approved(c.Context(), k, one, *role)
	})
	return c
}

// rolesApproved are those with which a person can be approved.
var rolesApproved = []string{"member", "guest", "owner"}

// approved tells whose account was approved, and how to undo that.
func (p *printer) approved(ctx context.Context, k *admin.Client, one *adminv1.Account, role string) error {
	who := one.UserId
	if one.Name != "" {
		who = fmt.Sprintf("%s (%s)", one.Name, one.UserId)
	}
	if !one.Owner {
		p.line("%s is connected on %s, as %s.", who, one.Channel, asRole(cmp.Or(role, "member")))
		return nil
	}
	p.line("%s is connected on %s as you, the owner.", who, one.Channel)
	all, err := k.People(ctx, &adminv1.PeopleRequest{})
	if err != nil {
		return err
	}
	undo := fmt.Sprintf("switchboard pairing revoke %s %s", one.Channel, one.UserId)
	for _, x := range all.People {
		if x.Id == ownerID && len(x.Accounts) > 1 {
			undo = "switchboard people unlink " + addressOf(one)
		}
	}
	p.line("If this is another person: `%s`", undo)
	return nil
}

func newPairingClear() *cobra.Command {
	c := &cobra.Command{
		Use: "clear [CHANNEL]", Short: "Delete the codes that wait for approval", Args: cobra.MaximumNArgs(1),
		Long: "Deletes the codes that wait for approval, of one channel or of all. A person whose code is\n" +
			"deleted gets a new one with the next message.",
		ValidArgsFunction: first(channelIDs),
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("delete the codes", func(c *cobra.Command, k *admin.Client, args []string) error {
		q := &adminv1.ClearPairingsRequest{Channel: strings.Join(args, "")}
		out, err := k.ClearPairings(c.Context(), q)
		if err != nil {
			return err
		}
		if out.Cleared == 0 && q.Channel != "" { // a channel that was removed may have had some
			dir, err := k.Directory(c.Context(), &adminv1.DirectoryRequest{})
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(dir.Channels, func(x *adminv1.Channel) bool { return x.Id == q.Channel }) {
				return hinted(fmt.Errorf("%w: there is no channel %q", contract.ErrNotFound, q.Channel),
					"switchboard channels list")
			}
		}
		if *asJSON {
			return printJSON(c, out)
		}
		switch p := printerOf(c); {
		case out.Cleared == 0 && q.Channel != "":
			p.line("No code was waiting on %s.", q.Channel)
		case out.Cleared == 0:
			p.line("No code was waiting.")
		default:
			p.line("Deleted %s.", count(int(out.Cleared), "code"))
		}
		return nil
	})
	return c
}
