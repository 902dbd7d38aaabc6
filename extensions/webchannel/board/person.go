package board

import (
	"net/http"
	"net/url"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// personSheet is the page of one person.
func (q *request) personSheet(x *adminv1.Person) *sheet {
	const base = "/board/people"
	roleText := map[string]string{
		"owner":   q.say("owner: may do everything"),
		"member":  q.say("member: uses what is the household's, and has things of their own"),
		"guest":   q.say("guest: may only chat"),
		"blocked": q.say("blocked: gets no answers; what ran and waited for them has ended"),
	}
	about := block{Facts: []fact{
		{q.say("Role"), text(roleText[x.GetRole()])},
		{q.say("Time zone"), text(orElse(x.GetTimezone(), q.say("the configured one")))},
		{q.say("Quiet hours"), text(orElse(x.GetQuiet(), q.say("none")))},
		{q.say("Theirs"), text(q.belongings(x))},
	}}
	who := hidden{"person", x.GetId()}
	if x.GetId() != contract.Owner {
		about.Forms = []form{
			{
				Action: base + "/role", Label: q.say("Save"), Summary: q.say("Change the role"), Hidden: []hidden{who},
				Fields: []field{{
					Name: "role", Label: q.say("Role"), Type: "choice", Options: choices(x.GetRole(), "owner", roleText["owner"],
						"member", roleText["member"], "guest", roleText["guest"], "blocked", roleText["blocked"]),
				}},
			},
			{
				Action: base + "/remove", Label: q.say("Remove for good"), Summary: q.say("Remove"), Danger: true,
				Hidden: []hidden{who},
				Question: q.say("Remove %s? All their accounts are revoked, and what is their own is deleted for good: %s. "+
					"What they told the household is kept.", nameOf(x), q.belongings(x)),
			},
		}
	}
	t := &table{Head: []string{q.say("Account"), q.say("Name"), q.say("Approved")}, Empty: q.say("There are no accounts.")}
	for _, a := range x.GetAccounts() {
		address, since := text(addressOf(a)), q.at(a.GetApprovedAtUs())
		if a.GetId() == x.GetHome() {
			address.Sub = q.say("messages go here")
		}
		r := row{}
		if a.GetApprovedAtUs() == 0 {
			if since = text(q.say("by config.yaml")); a.GetChannel() == terminal {
				since = text(q.say("on this machine"))
			}
		} else {
			r.Forms = append(r.Forms, form{
				Action: base + "/revoke", Label: q.say("Revoke"), Danger: true,
				Hidden: []hidden{who, {"channel", a.GetChannel()}, {"user", a.GetUserId()}},
				Question: q.say("Revoke the approval of %s? What the assistant does for them ends: reminders, tasks and "+
					"questions too.", addressOf(a)),
			})
		}
		if len(x.GetAccounts()) > 1 && a.GetChannel() != terminal {
			r.Forms = append(r.Forms, form{
				Action: base + "/unlink", Label: q.say("Unlink"), Hidden: []hidden{who, {"account", a.GetId()}},
				Question: q.say("Make %s a person of its own? What was set up from the account goes with it.", addressOf(a)),
			})
		}
		r.Cells = []cell{address, text(dash(a.GetName())), since}
		t.Rows = append(t.Rows, r)
	}
	return &sheet{Title: nameOf(x), Blocks: []block{
		about, {Title: q.say("Accounts"), Table: t}, {Links: []link{{Text: q.say("All people"), Href: base}}},
	}}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// belongings says how much is a person's, and not what it says.
func (q *request) belongings(x *adminv1.Person) string {
	counts := func(name string, fields map[string]any) int {
		type rows struct {
			Memories, Schedules, Tasks []struct{}
			More                       int
		}
		found, err := askFor[rows](q, name, fields, x.GetId(), false)
		if err != nil {
			return -1
		}
		return len(found.Memories) + len(found.Schedules) + len(found.Tasks) + found.More
	}
	items := []string{}
	for _, one := range []struct {
		n    int
		said func(n int) string
		none string
	}{
		{counts("memory/list_memories", map[string]any{"limit": 1000}), func(n int) string {
			return words.Count(q.v.Language, "%d memory", "%d memories", n, n)
		}, q.say("memories (not known: the extension isn't running)")},
		{counts("scheduler/list_schedules", map[string]any{"limit": 1000}), func(n int) string {
			return words.Count(q.v.Language, "%d reminder", "%d reminders", n, n)
		}, q.say("reminders (not known: the extension isn't running)")},
		{counts("tasks/list", map[string]any{"all": true}), func(n int) string {
			return words.Count(q.v.Language, "%d task", "%d tasks", n, n)
		}, q.say("tasks (not known: the extension isn't running)")},
	} {
		if one.n < 0 {
			items = append(items, one.none)
		} else {
			items = append(items, one.said(one.n))
		}
	}
	return words.List(q.v.Language, items, len(items))
}

// peopleChanges serves the forms of people.
func (b *board) peopleChanges(mux *http.ServeMux, base string) {
	change := func(path string, do func(q *request) (back, said string, err error)) {
		b.change(mux, base+path, owners, door.ScopePeople, do)
	}
	change("/approve", func(q *request) (string, string, error) {
		one, err := b.Manage.Approve(q.Context(), &adminv1.ApproveRequest{Code: q.field("code"), Role: q.field("role")})
		if err != nil {
			return "", "", err
		}
		said := q.say("%s is connected on %s.", orElse(one.GetName(), one.GetUserId()), one.GetChannel())
		if one.GetOwner() {
			said = q.say("%s is connected on %s as you, the owner.", orElse(one.GetName(), one.GetUserId()), one.GetChannel())
		}
		return base, said, nil
	})
	change("/clear", func(q *request) (string, string, error) {
		out, err := b.Manage.ClearPairings(q.Context(), &adminv1.ClearPairingsRequest{})
		n := int(out.GetCleared())
		return base, words.Count(q.v.Language, "Deleted %d code.", "Deleted %d codes.", n, n), err
	})
	change("/role", func(q *request) (string, string, error) {
		x, err := b.Manage.SetRole(q.Context(), &adminv1.SetRoleRequest{Person: q.field("person"), Role: q.field("role")})
		return q.personPath(), q.say("Saved. The role is now: %s.", q.roleName(x.GetRole())), err
	})
	change("/revoke", func(q *request) (string, string, error) {
		out, err := b.Manage.Revoke(q.Context(), &adminv1.RevokeRequest{
			Channel: q.field("channel"), UserId: q.field("user"),
		})
		said := q.say("%s is no longer approved on %s.", q.field("user"), q.field("channel"))
		return base, said + " " + q.endings(out), err
	})
	change("/unlink", func(q *request) (string, string, error) {
		_, err := b.Manage.Unlink(q.Context(), &adminv1.UnlinkRequest{Account: q.field("account")})
		return base, q.say("The account is a person of its own now."), err
	})
	change("/remove", func(q *request) (string, string, error) {
		x, err := q.findPerson(q.field("person"))
		if err != nil {
			return "", "", err
		}
		out, err := b.Manage.RemovePerson(q.Context(), &adminv1.RemovePersonRequest{Person: x.GetId()})
		return base, q.say("%s is removed.", nameOf(x)) + " " + q.endings(out), err
	})
	change("/household", func(q *request) (string, string, error) {
		g, err := b.Manage.SetHousehold(q.Context(), &adminv1.SetHouseholdRequest{
			Group: q.field("group"), Household: q.field("household") == "yes",
		})
		said := q.say("%s uses only what is said in it now.", groupName(g))
		if g.GetHousehold() {
			said = q.say("%s is a household group now.", groupName(g))
		}
		return base, said, err
	})
}

// personPath is the page of the person that a form names.
func (q *request) personPath() string { return "/board/people/" + url.PathEscape(q.field("person")) }

// endings says what has ended with an approval.
func (q *request) endings(out *adminv1.RevokeResponse) string {
	return q.say("Ended: answers %d, jobs %d, questions %d, unsent messages %d.",
		out.GetTurns(), out.GetJobs(), out.GetQuestions(), out.GetSends())
}
