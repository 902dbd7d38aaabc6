package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/clichannel"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// Roles of people, and what people with them may do.
var (
	roles = []string{"owner", "member", "guest", "blocked"}
	mayAs = map[string]string{
		"owner":   "may also change what concerns everyone",
		"member":  "uses what is the household's, and has things of their own",
		"guest":   "may only chat: no tools that change something, and nothing of the household",
		"blocked": "gets no answers; what ran and waited for them has ended",
	}
)

// ownerID is the id of the person whose accounts are the owner's.
const ownerID = "owner"

func newPeopleCommand() *cobra.Command {
	return group("people", "People, their accounts and roles", newPeopleList(), newPeopleShow(), newPeopleRole(),
		newPeopleExport(), newPeopleRemove(), newPeopleUnlink())
}

func newPeopleList() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List the people with their accounts", Args: cobra.NoArgs,
		Long: "Lists everyone whose account the assistant knows. A person has one or more accounts: /link, written to\n" +
			"the assistant, joins them. Requests for approval are in `switchboard pairing list`.",
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("list the people", func(c *cobra.Command, k *admin.Client, _ []string) error {
		all, err := k.People(c.Context(), &adminv1.PeopleRequest{})
		if err != nil {
			return err
		}
		return list(c, *asJSON, all.People, "NAME ROLE TIMEZONE QUIET ID ACCOUNTS | ID QUIET TIMEZONE",
			"Nobody has written yet: `switchboard setup` connects a channel.",
			func(_ *printer, x *adminv1.Person) []cell {
				var accounts []string
				for _, a := range x.Accounts {
					accounts = append(accounts, a.Channel+": "+a.UserId)
				}
				return []cell{text(dash(x.Name)), role(x), text(dash(x.Timezone)), text(dash(x.Quiet)), text(x.Id),
					text(strings.Join(accounts, ", "))}
			})
	})
	return c
}

func role(x *adminv1.Person) cell {
	c := text(x.Role)
	if x.Role == "blocked" {
		c.color = yellow
	}
	return c
}

// nameOf returns the name of a person for texts.
func nameOf(x *adminv1.Person) string {
	if x.Name == "" && x.Id != ownerID && len(x.Accounts) > 0 {
		return addressOf(x.Accounts[0])
	}
	return cmp.Or(x.Name, x.Id)
}

// addressOf returns an account as commands take it.
func addressOf(a *adminv1.Account) string { return a.Channel + "/" + a.UserId }

// personNamed returns the person with an id, an account or a name, if only one has the
// name.
func personNamed(ctx context.Context, k *admin.Client, name string) (*adminv1.Person, error) {
	all, err := k.People(ctx, &adminv1.PeopleRequest{})
	if err != nil {
		return nil, err
	}
	var full, first []*adminv1.Person
	for _, x := range all.People {
		names := []string{x.Name}
		for _, a := range x.Accounts {
			if name == a.Id || name == addressOf(a) {
				return x, nil
			}
			names = append(names, a.Name, a.UserId)
		}
		if x.Id == name {
			return x, nil
		}
		called := func(is func(string) string) bool {
			return slices.ContainsFunc(names, func(s string) bool { return s != "" && strings.EqualFold(is(s), name) })
		}
		switch {
		case called(func(s string) string { return s }):
			full = append(full, x)
		case called(func(s string) string { before, _, _ := strings.Cut(s, " "); return before }):
			first = append(first, x)
		}
	}
	if len(full) > 0 {
		first = full
	}
	switch len(first) {
	case 0:
		return nil, hinted(fmt.Errorf("%w: there is no person %q", contract.ErrNotFound, name), "switchboard people list")
	case 1:
		return first[0], nil
	}
	var known []string
	for _, x := range first {
		for _, a := range x.Accounts {
			known = append(known, addressOf(a))
		}
	}
	return nil, fmt.Errorf("%d people are named %q: give an account (%s) or an id", len(first), name,
		strings.Join(known, ", "))
}

func peopleNames(ctx context.Context, k *admin.Client) (out []string, err error) {
	all, err := k.People(ctx, &adminv1.PeopleRequest{})
	for _, x := range all.GetPeople() {
		out = append(out, cmp.Or(x.Name, x.Id)+"\t"+x.Role+", "+x.Id)
	}
	return out, err
}

func linkedAccounts(ctx context.Context, k *admin.Client) (out []string, err error) {
	all, err := k.People(ctx, &adminv1.PeopleRequest{})
	for _, x := range all.GetPeople() {
		if len(x.Accounts) > 1 {
			for _, a := range x.Accounts {
				out = append(out, addressOf(a)+"\t"+nameOf(x))
			}
		}
	}
	return out, err
}

// belongings counts what is a person's.
type belongings struct {
	Conversations int `json:"conversations"`
	Memories      int `json:"memories"`
	Schedules     int `json:"schedules"`
	Tasks         int `json:"tasks"`
	// Unknown names what can't be counted, because the extension doesn't run.
	Unknown []string `json:"unknown,omitempty"`
}

func belongingsOf(ctx context.Context, k *admin.Client, x *adminv1.Person) (b belongings, err error) {
	sessions, err := sessionsOf(ctx, k, x)
	if err != nil {
		return b, err
	}
	b.Conversations = conversations(sessions)
	for _, one := range []struct {
		what  string
		count func() error
	}{
		{"memories", func() error {
			found, err := callToolOf[memoryList](ctx, k, x.Id, listMemories, map[string]any{"limit": memoryPage})
			b.Memories = len(found.Memories) + found.More
			return err
		}},
		{"reminders", func() error {
			found, err := schedulesOf(ctx, k, x.Id, false)
			b.Schedules = len(found.Schedules) + found.More
			return err
		}},
		{"tasks", func() error {
			found, more, err := tasksOf(ctx, k, x.Id, true)
			b.Tasks = len(found) + more
			return err
		}},
	} {
		if one.count() != nil {
			b.Unknown = append(b.Unknown, one.what)
		}
	}
	return b, nil
}

func (b belongings) String() string {
	var all []string
	for _, one := range []struct {
		n         int
		one, many string
	}{
		{b.Conversations, "conversation", "conversations"}, {b.Memories, "memory", "memories"},
		{b.Schedules, "reminder", "reminders"}, {b.Tasks, "task", "tasks"},
	} {
		switch {
		case slices.Contains(b.Unknown, one.many):
			all = append(all, one.many+" (not known: the extension isn't running)")
		case one.n == 1:
			all = append(all, "1 "+one.one)
		default:
			all = append(all, fmt.Sprintf("%d %s", one.n, one.many))
		}
	}
	return strings.Join(all, ", ")
}

// sessionsOf returns the private sessions of a person, and those made within them.
func sessionsOf(ctx context.Context, k *admin.Client, x *adminv1.Person) ([]admin.NamedSession, error) {
	all, err := admin.Sessions(ctx, k, &adminv1.SessionsRequest{Limit: 1 << 30})
	if err != nil {
		return nil, err
	}
	theirs := map[string]bool{}
	for _, s := range all {
		theirs[s.Id] = !s.Group && slices.ContainsFunc(x.Accounts, func(a *adminv1.Account) bool {
			return s.Channel == a.Channel && (s.Channel == clichannel.ID ||
				s.Conversation == a.UserId || s.Conversation == a.Conversation && s.Conversation != "")
		})
	}
	for known := -1; known != len(theirs); {
		maps.DeleteFunc(theirs, func(_ string, is bool) bool { return !is })
		known = len(theirs)
		for _, s := range all {
			if theirs[s.Within] {
				theirs[s.Id] = true
			}
		}
	}
	return slices.DeleteFunc(all, func(s admin.NamedSession) bool { return !theirs[s.Id] }), nil
}

// conversations counts the sessions that weren't made within another one.
func conversations(sessions []admin.NamedSession) (n int) {
	for _, s := range sessions {
		if s.Within == "" {
			n++
		}
	}
	return n
}

func newPeopleShow() *cobra.Command {
	c := &cobra.Command{
		Use: "show NAME", Short: "Show a person with accounts, and how much is theirs", Args: cobra.ExactArgs(1),
		Long: "Shows a person: role, settings, accounts, and how much is theirs, but not what it says.\n" +
			"NAME is a name, an account (channel/user) or an id.",
		ValidArgsFunction: first(peopleNames),
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("show", func(c *cobra.Command, k *admin.Client, args []string) error {
		x, err := personNamed(c.Context(), k, args[0])
		if err != nil {
			return err
		}
		b, err := belongingsOf(c.Context(), k, x)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c, admin.JSON(x).With("belongings", b))
		}
		p := printerOf(c)
		p.line("%s", nameOf(x))
		p.line("Id: %s", x.Id)
		p.line("Role: %s (%s)", x.Role, mayAs[x.Role])
		p.line("Time zone: %s", cmp.Or(x.Timezone, "the configured one"))
		p.line("Quiet hours: %s", cmp.Or(x.Quiet, "none"))
		p.line("Theirs: %s", b)
		var rows [][]cell
		for _, a := range x.Accounts {
			since, home := "by config.yaml", ""
			if a.ApprovedAtUs != 0 {
				since = ago(at(a.ApprovedAtUs))
			} else if a.Channel == clichannel.ID {
				since = "on this machine"
			}
			if a.Id == x.Home {
				home = "messages go here"
			}
			rows = append(rows, []cell{text(addressOf(a)), text(dash(a.Name)), text(since), text(home)})
		}
		p.line("")
		p.table("ACCOUNT NAME APPROVED HOME", rows)
		return nil
	})
	return c
}

func newPeopleRole() *cobra.Command {
	c := &cobra.Command{
		Use: "role NAME ROLE", Short: "Give a person a role", Args: cobra.ExactArgs(2),
		Long: "Gives a person a role:\n" +
			"  owner    " + mayAs["owner"] + "\n" +
			"  member   " + mayAs["member"] + "\n" +
			"  guest    " + mayAs["guest"] + "\n" +
			"  blocked  " + mayAs["blocked"] + "\n" +
			"NAME is a name, an account (channel/user) or an id.",
		Example: "  switchboard people role Boris guest",
		ValidArgsFunction: func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return cobra.FixedCompletions(roles, cobra.ShellCompDirectiveNoFileComp)(c, args, begun)
			}
			return first(peopleNames)(c, args, begun)
		},
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("give a role to", func(c *cobra.Command, k *admin.Client, args []string) error {
		if mayAs[args[1]] == "" {
			return fmt.Errorf("there is no role %q: give one of %s", args[1], strings.Join(roles, ", "))
		}
		x, err := personNamed(c.Context(), k, args[0])
		if err != nil {
			return err
		}
		changed, err := k.SetRole(c.Context(), &adminv1.SetRoleRequest{Person: x.Id, Role: args[1]})
		if err != nil {
			return err
		}
		x.Role = changed.Role
		if *asJSON {
			return printJSON(c, x)
		}
		printerOf(c).line("%s is %s now: %s.", nameOf(x), asRole(x.Role), mayAs[x.Role])
		return nil
	})
	return c
}

// asRole returns a role as a person has it.
func asRole(role string) string {
	switch role {
	case "owner":
		return "an owner"
	case "blocked":
		return "blocked"
	}
	return "a " + role
}

func newPeopleUnlink() *cobra.Command {
	c := &cobra.Command{
		Use: "unlink ACCOUNT", Short: "Make one of a person's accounts a person of its own", Args: cobra.ExactArgs(1),
		Long: "Makes one of several accounts of a person a person of its own, a member. What was set up from the account\n" +
			"goes with it. ACCOUNT is channel/user, or the account's id.",
		Example:           "  switchboard people unlink discord_channel/123",
		ValidArgsFunction: first(linkedAccounts),
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("unlink", func(c *cobra.Command, k *admin.Client, args []string) error {
		all, err := k.People(c.Context(), &adminv1.PeopleRequest{})
		if err != nil {
			return err
		}
		var x *adminv1.Person
		var a *adminv1.Account
		for _, one := range all.People {
			for _, account := range one.Accounts {
				if args[0] == account.Id || args[0] == addressOf(account) {
					x, a = one, account
				}
			}
		}
		switch {
		case a == nil:
			return hinted(fmt.Errorf("%w: there is no account %q; give channel/user", contract.ErrNotFound, args[0]),
				"switchboard people list")
		case a.Channel == clichannel.ID:
			return errors.New("the terminal is always the owner's")
		case len(x.Accounts) < 2 && a.Owner:
			return fmt.Errorf("it is the owner's only account; `switchboard pairing revoke %s %s` ends its approval",
				a.Channel, a.UserId)
		case len(x.Accounts) < 2:
			return fmt.Errorf("%s isn't linked to another account", addressOf(a))
		}
		if _, err = k.Unlink(c.Context(), &adminv1.UnlinkRequest{Account: a.Id}); err != nil {
			return err
		}
		now, err := personNamed(c.Context(), k, a.Id)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c, now)
		}
		p := printerOf(c)
		p.line("%s is a person of its own now, a %s: %s.", addressOf(a), now.Role, nameOf(now))
		p.line("%s keeps: %s.", nameOf(x), strings.Join(otherAccounts(x, a), ", "))
		return p.stillOwner(c.Context(), k, a)
	})
	return c
}

func otherAccounts(x *adminv1.Person, but *adminv1.Account) (others []string) {
	for _, a := range x.Accounts {
		if a.Id != but.Id {
			others = append(others, addressOf(a))
		}
	}
	return others
}

// stillOwner tells who is the owner on a channel after an account of the owner was
// unlinked there.
func (p *printer) stillOwner(ctx context.Context, k *admin.Client, a *adminv1.Account) error {
	if !a.Owner {
		return nil
	}
	dir, err := k.Directory(ctx, &adminv1.DirectoryRequest{})
	if err != nil {
		return err
	}
	for _, ch := range dir.Channels {
		switch {
		case ch.Id != a.Channel:
		case len(ch.AllowFrom) > 0 && ch.AllowFrom[0] == a.UserId:
			p.line("config.yaml (channels.%s.allow_from) still names this account first, so it is the owner's there: "+
				"name another one first.", ch.Id)
		case len(ch.AllowFrom) == 0:
			p.line("%s has no owner now: the next person approved there without --role becomes the owner.", ch.Id)
		}
	}
	return nil
}

// removal is what went with a person.
type removal struct {
	Person *admin.Object `json:"person"`
	Had    belongings    `json:"deleted"`
	endings
}

func newPeopleRemove() *cobra.Command {
	c := &cobra.Command{
		Use: "remove NAME", Short: "Remove a person, and delete what is theirs", Args: cobra.ExactArgs(1),
		Long: "Revokes all accounts of a person and deletes, for good, what is their own: private conversations,\n" +
			"memories, reminders, tasks. What they told the household is kept. NAME is a name, an account\n" +
			"(channel/user) or an id.",
		Example:           "  switchboard people remove Boris",
		ValidArgsFunction: first(peopleNames),
	}
	asJSON := jsonFlag(c)
	yes := c.Flags().BoolP("yes", "y", false, "do not ask")
	c.RunE = withKernel("remove", func(c *cobra.Command, k *admin.Client, args []string) error {
		x, err := personNamed(c.Context(), k, args[0])
		if err != nil {
			return err
		}
		if x.Id == ownerID {
			return fmt.Errorf("the owner can't be removed; `switchboard people unlink` unlinks an account of another person")
		}
		had, err := belongingsOf(c.Context(), k, x)
		if err != nil {
			return err
		}
		p := printerOf(c)
		if !*asJSON {
			p.line("What goes with %s:", nameOf(x))
			p.line("- %s: %s", count(len(x.Accounts), "account"), strings.Join(otherAccounts(x, &adminv1.Account{}), ", "))
			p.line("- of their own: %s", had)
		}
		if ok, err := confirm(c, *yes, "Remove "+nameOf(x)+" and delete this for good?",
			"`switchboard people export` keeps a copy"); err != nil || !ok {
			return err
		}
		out, err := k.RemovePerson(c.Context(), &adminv1.RemovePersonRequest{Person: x.Id})
		if err != nil {
			return err
		}
		r := removal{Person: admin.JSON(x), Had: had, endings: endedBy(out)}
		if err := r.collect(c.Context(), k, out.Events...); err != nil {
			return fmt.Errorf("%s is removed; read what has ended: %w", nameOf(x), err)
		}
		if *asJSON {
			return printJSON(c, r)
		}
		p.line("%s is removed. Of their own, %s are deleted.", nameOf(x), had)
		p.endings(r.endings)
		return p.stillAdmitted(c.Context(), k, x)
	})
	return c
}

// stillAdmitted tells which accounts of a person who was removed the configuration admits.
func (p *printer) stillAdmitted(ctx context.Context, k *admin.Client, x *adminv1.Person) error {
	dir, err := k.Directory(ctx, &adminv1.DirectoryRequest{})
	if err != nil {
		return err
	}
	for _, a := range x.Accounts {
		for _, ch := range dir.Channels {
			if ch.Id == a.Channel && (slices.Contains(ch.AllowFrom, a.UserId) || slices.Contains(ch.AllowFrom, "*")) {
				p.line("config.yaml (channels.%s.allow_from) still admits %s: change it, or they can write again.",
					ch.Id, a.UserId)
			}
		}
	}
	return nil
}
