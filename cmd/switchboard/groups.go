package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newGroupsCommand() *cobra.Command {
	return group("groups", "Group chats, and what is used in them", newGroupsList(), newGroupsHousehold())
}

func newGroupsList() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List the groups", Args: cobra.NoArgs,
		Long: "Lists the groups in which the assistant got messages. Others can read a group: only what was said or\n" +
			"set in it is used there. In a household group, everything of the household is used.",
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("list the groups", func(c *cobra.Command, k *admin.Client, _ []string) error {
		people, err := k.People(c.Context(), &adminv1.PeopleRequest{})
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c, append([]*adminv1.Group{}, people.Groups...))
		}
		p := printerOf(c)
		var rows [][]cell
		for _, g := range people.Groups {
			rows = append(rows, []cell{text(g.Id), text(dash(g.Name)), text(g.Channel), text(g.Conversation),
				text(usedIn(g))})
		}
		if len(rows) == 0 {
			p.line("There are no groups yet.")
			p.faint("Add the assistant to a group chat and mention it there.")
			return nil
		}
		p.table("ID NAME CHANNEL CONVERSATION USES", rows)
		return nil
	})
	return c
}

func usedIn(g *adminv1.Group) string {
	if g.Household {
		return "everything of the household"
	}
	return "only its own"
}

func newGroupsHousehold() *cobra.Command {
	c := &cobra.Command{
		Use: "household GROUP", Short: "Make a group a household group, or undo that with --off",
		Args: cobra.ExactArgs(1), ValidArgsFunction: first(groupIDs),
		Long: "Makes a group a household group: everything of the household is used there, and everyone in the group\n" +
			"can read it. --off undoes that and starts a new conversation in the group. GROUP is its id or its name.",
	}
	asJSON := jsonFlag(c)
	off := c.Flags().Bool("off", false, "use only what is said in the group")
	c.RunE = withKernel("change the group", func(c *cobra.Command, k *admin.Client, args []string) error {
		people, err := k.People(c.Context(), &adminv1.PeopleRequest{})
		if err != nil {
			return err
		}
		found, err := groupNamed(people.Groups, args[0])
		if err != nil {
			return hinted(err, "switchboard groups list")
		}
		g, err := k.SetHousehold(c.Context(), &adminv1.SetHouseholdRequest{Group: found.Id, Household: !*off})
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c, g)
		}
		if g.Household {
			printerOf(c).line("%s is a household group now.", groupName(g))
		} else {
			printerOf(c).line("%s uses only what is said in it now.", groupName(g))
		}
		return nil
	})
	return c
}

// groupNamed returns the group with an id or a name, if only one has the name.
func groupNamed(all []*adminv1.Group, name string) (found *adminv1.Group, err error) {
	for _, g := range all {
		switch {
		case g.Id == name:
			return g, nil
		case !strings.EqualFold(g.Name, name) && g.Conversation != name:
		case found != nil:
			return nil, fmt.Errorf("several groups are named %q: use an id", name)
		default:
			found = g
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: there is no group %q", contract.ErrNotFound, name)
	}
	return found, nil
}

func groupName(g *adminv1.Group) string {
	if g.Name != "" {
		return g.Name
	}
	return g.Channel + " " + g.Conversation
}
