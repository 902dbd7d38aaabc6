package main

import (
	"cmp"
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
		Long: "Approves the person with the code. The first one on a channel becomes its owner and\ngets " +
			"notices and reminders there.",
		ValidArgsFunction: first(pairingCodes),
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("approve", func(c *cobra.Command, k *admin.Client, args []string) error {
		one, err := k.Approve(c.Context(), &adminv1.ApproveRequest{Code: args[0]})
		if err != nil {
			return hinted(err, "switchboard pairing list")
		}
		if *asJSON {
			return printJSON(c, one)
		}
		who := one.UserId
		if one.Name != "" {
			who = fmt.Sprintf("%s (%s)", one.Name, one.UserId)
		}
		p := printerOf(c)
		if one.Owner {
			p.line("%s is approved on %s, as its owner.", who, one.Channel)
		} else {
			p.line("%s is approved on %s.", who, one.Channel)
		}
		return nil
	})
	return c
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
