package board

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// terminal is the channel of the owner's terminal, whose account is always theirs.
const terminal = "cli_channel"

// roleName returns a role, with what people with it may do.
func (q *request) roleName(role string) string {
	switch role {
	case "owner":
		return q.say("owner")
	case "member":
		return q.say("member")
	case "guest":
		return q.say("guest")
	case "blocked":
		return q.say("blocked")
	}
	return role
}

// people shows the people, who waits for approval, and the groups.
func (b *board) people(mux *http.ServeMux) {
	const base = "/board/people"
	b.page(mux, base, owners, door.ScopePeople, func(q *request) (*sheet, error) {
		all, err := b.Read.People(q.Context(), &adminv1.PeopleRequest{})
		if err != nil {
			return nil, err
		}
		s := &sheet{Title: q.say("People")}
		if len(all.GetWaiting()) > 0 {
			s.Blocks = append(s.Blocks, q.waitingBlock(all.GetWaiting()))
		}
		s.Blocks = append(s.Blocks, q.peopleBlock(all.GetPeople()), q.groupsBlock(all.GetGroups()), block{
			Title: q.say("One person, several accounts"), Folded: true,
			Text: []string{
				q.say("Someone who writes to the assistant for the first time gets a code. It is listed here until you " +
					"approve it: do that only if you know who it is."),
				q.say("To join two accounts of one person, write /link to the assistant in one private chat, and the code " +
					"that you get in the other one. /link off undoes it, and so does Unlink on the person's page."),
			},
		})
		return s, nil
	})
	b.page(mux, base+"/{id}", owners, door.ScopePeople, func(q *request) (*sheet, error) {
		x, err := q.findPerson(q.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return q.personSheet(x), nil
	})
	b.peopleChanges(mux, base)
}

func (q *request) waitingBlock(waiting []*adminv1.Pairing) block {
	t := &table{Head: []string{q.say("Name"), q.say("Channel"), q.say("Code"), q.say("Expires")}}
	slices.SortStableFunc(waiting, func(a, b *adminv1.Pairing) int { return cmp.Compare(b.ExpiresAtUs, a.ExpiresAtUs) })
	const most = 50
	for _, w := range waiting[:min(len(waiting), most)] {
		t.Rows = append(t.Rows, row{
			Cells: []cell{
				{Text: cmp.Or(w.GetName(), w.GetUserId()), Sub: w.GetUserId()}, text(w.GetChannel()),
				{Text: w.GetCode(), Code: true}, q.at(w.GetExpiresAtUs()),
			},
			Forms: []form{{
				Action: "/board/people/approve", Label: q.say("Approve"), Hidden: []hidden{{"code", w.GetCode()}},
				Fields: []field{{
					Name: "role", Label: q.say("As"), Type: "choice", Options: choices("",
						"", q.say("me, if it is the first account on its channel; else a member"),
						"member", q.say("member: uses what is the household's, and has things of their own"),
						"guest", q.say("guest: may only chat"), "owner", q.say("owner: may do everything")),
				}},
			}},
		})
	}
	text := []string{}
	if more := len(waiting) - most; more > 0 {
		text = append(text, words.Count(q.v.Language, "%d older code isn't shown.", "%d older codes aren't shown.",
			more, more))
	}
	return block{
		Title: q.say("Waiting for approval"), Text: text, Table: t,
		Forms: []form{{
			Action: "/board/people/clear", Label: q.say("Delete all codes"), Danger: true,
			Question: q.say("Delete all codes that wait? A person whose code is deleted gets a new one with the next message."),
		}},
	}
}

func (q *request) peopleBlock(people []*adminv1.Person) block {
	t := &table{
		Head: []string{q.say("Name"), q.say("Role"), q.say("Accounts"), q.say("Time zone"), q.say("Quiet hours")},
		Empty: q.say("No one has written yet. `switchboard setup` connects a channel; who writes there first gets a code, " +
			"which is shown here."),
	}
	for _, x := range people {
		accounts := make([]string, len(x.GetAccounts()))
		for i, a := range x.GetAccounts() {
			accounts[i] = addressOf(a)
		}
		role := text(q.roleName(x.GetRole()))
		if x.GetRole() == "blocked" {
			role.Class = "warn"
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			linked(nameOf(x), "/board/people/"+url.PathEscape(x.GetId())), role, text(strings.Join(accounts, ", ")),
			text(dash(x.GetTimezone())), text(dash(x.GetQuiet())),
		}})
	}
	return block{Title: q.say("Known people"), Table: t}
}

func (q *request) groupsBlock(groups []*adminv1.Group) block {
	t := &table{
		Head:  []string{q.say("Group"), q.say("Channel"), q.say("What is used there")},
		Empty: q.say("There are no groups yet. Add the assistant to a group chat and mention it there."),
	}
	for _, g := range groups {
		uses, label, ask := q.say("only what was said in it"), q.say("Make it a household group"),
			q.say("Use everything of the household there? Everyone in the group can read it.")
		on := "yes"
		if g.GetHousehold() {
			uses, label, on = q.say("everything of the household"), q.say("Use only what is said in it"), ""
			ask = q.say("Use only what is said in the group? A new conversation begins there.")
		}
		t.Rows = append(t.Rows, row{
			Cells: []cell{{Text: groupName(g), Sub: g.GetConversation()}, text(g.GetChannel()), text(uses)},
			Forms: []form{{
				Action: "/board/people/household", Label: label, Question: ask,
				Hidden: []hidden{{"group", g.GetId()}, {"household", on}},
			}},
		})
	}
	return block{Title: q.say("Groups"), Table: t}
}

func groupName(g *adminv1.Group) string {
	return cmp.Or(g.GetName(), g.GetChannel()+" "+g.GetConversation())
}

// nameOf returns the name of a person for texts.
func nameOf(x *adminv1.Person) string {
	if x.GetName() == "" && x.GetId() != contract.Owner && len(x.GetAccounts()) > 0 {
		return addressOf(x.GetAccounts()[0])
	}
	return cmp.Or(x.GetName(), x.GetId())
}

// addressOf returns an account as commands take it.
func addressOf(a *adminv1.Account) string { return a.GetChannel() + "/" + a.GetUserId() }

// findPerson returns the person with an id.
func (q *request) findPerson(id string) (*adminv1.Person, error) {
	all, err := q.b.Read.People(q.Context(), &adminv1.PeopleRequest{})
	if err != nil {
		return nil, err
	}
	for _, x := range all.GetPeople() {
		if x.GetId() == id {
			return x, nil
		}
	}
	return nil, words.Errorf("%w: there is no such person", contract.ErrNotFound)
}
