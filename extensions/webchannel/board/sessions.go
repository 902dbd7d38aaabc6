package board

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

const (
	sessionsPath = "/board/sessions"
	// sessionsShown is how many sessions a page shows, mostSessions how many it can.
	sessionsShown, mostSessions = 50, 5000
	// rowsShown is how many rows of a transcript a page shows.
	rowsShown = 50
)

// sessions shows the sessions with their transcripts: to a member, their private ones.
func (b *board) sessions(mux *http.ServeMux) {
	b.page(mux, sessionsPath, members, door.ScopeSessions, func(q *request) (*sheet, error) {
		n := min(number(q.URL.Query().Get("n"), sessionsShown), mostSessions)
		all, more, err := q.theirSessions(n)
		if err != nil {
			return nil, err
		}
		if err := admin.DescribeSessions(q.Context(), b.Read, all); err != nil {
			return nil, err
		}
		t := &table{
			Head:  []string{q.say("Conversation"), q.say("Agent"), q.say("State"), q.say("Active"), q.say("Last")},
			Empty: q.say("There are no conversations yet. Write to the assistant in the chat, and one begins."),
		}
		for _, s := range all {
			t.Rows = append(t.Rows, row{Cells: []cell{
				{Text: q.place(s), Sub: s.GetId(), Href: sessionPath(s.GetId())}, text(s.GetAgent()), q.doing(s),
				q.at(s.GetActiveAtUs()), text(dash(s.Last)),
			}})
		}
		if more && n < mostSessions {
			t.More = &link{Text: q.say("Show more"), Href: fmt.Sprintf("%s?n=%d", sessionsPath, min(4*n, mostSessions))}
		}
		return &sheet{Title: q.say("Sessions"), Blocks: []block{{Table: t}}}, nil
	})
	b.page(mux, sessionsPath+"/{id}", members, door.ScopeSessions, func(q *request) (*sheet, error) {
		s, err := q.session(q.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return q.transcript(s, int64(number(q.URL.Query().Get("before"), 0)))
	})
	b.change(mux, sessionsPath+"/delete", owners, door.ScopeSessions, func(q *request) (string, string, error) {
		_, err := b.Manage.DeleteSession(q.Context(), &adminv1.DeleteSessionRequest{Id: q.field("id")})
		return sessionsPath, q.say("The conversation %s is deleted.", q.field("id")), err
	})
}

// number reads a number above 0.
func number(s string, other int) int {
	if n, err := strconv.Atoi(s); err == nil && n > 0 {
		return n
	}
	return other
}

func sessionPath(id string) string { return sessionsPath + "/" + url.PathEscape(id) }

// theirSessions returns the newest sessions that the visitor may see.
func (q *request) theirSessions(n int) (all []admin.NamedSession, more bool, err error) {
	limit := int32(n + 1)
	if !q.v.Owner() {
		limit = mostSessions
	}
	all, err = admin.Sessions(q.Context(), q.b.Read, &adminv1.SessionsRequest{Limit: limit})
	if err != nil {
		return nil, false, err
	}
	if !q.v.Owner() {
		x, err := q.findPerson(q.v.Person)
		if err != nil {
			return nil, false, err
		}
		all = slices.DeleteFunc(all, func(s admin.NamedSession) bool { return !isTheirs(s.Session, x) })
	}
	more = len(all) > n
	return all[:min(n, len(all))], more, nil
}

// isTheirs reports whether a session is a private conversation with a person.
func isTheirs(s *adminv1.Session, x *adminv1.Person) bool {
	return !s.GetGroup() && slices.ContainsFunc(x.GetAccounts(), func(a *adminv1.Account) bool {
		return s.GetChannel() == a.GetChannel() && s.GetConversation() != "" &&
			(s.GetConversation() == a.GetUserId() || s.GetConversation() == a.GetConversation())
	})
}

// session returns a session that the visitor may see; for others it doesn't exist.
func (q *request) session(id string) (admin.NamedSession, error) {
	s, err := admin.Session(q.Context(), q.b.Read, id)
	if err == nil && !q.v.Owner() {
		var x *adminv1.Person
		if x, err = q.findPerson(q.v.Person); err == nil && !isTheirs(s.Session, x) {
			err = contract.ErrNotFound
		}
	}
	if err != nil && statusOf(err) == http.StatusNotFound {
		err = words.Errorf("%w: there is no such conversation", contract.ErrNotFound)
	}
	return s, err
}

// place returns the conversation of a session.
func (q *request) place(s admin.NamedSession) string {
	if s.GetGroup() {
		return q.say("%s (group)", s.Name)
	}
	return cmp.Or(s.Name, s.GetKey())
}

// doing shows the state of a session.
func (q *request) doing(s admin.NamedSession) cell {
	c := q.state(s.GetState())
	switch {
	case s.GetEnded() && s.GetState() == "idle":
		return q.state("ended")
	case s.GetWaiting() > 0:
		c.Sub = words.Count(q.v.Language, "%d message waits", "%d messages wait", int(s.GetWaiting()), s.GetWaiting())
	}
	return c
}

// transcript is the page of a session: its newest rows, or those before one.
func (q *request) transcript(s admin.NamedSession, before int64) (*sheet, error) {
	rows, err := admin.History(q.Context(), q.b.Read, &adminv1.HistoryRequest{
		Session: s.GetId(), Before: before, Limit: rowsShown + 1,
	})
	if err != nil {
		return nil, err
	}
	out := &sheet{Title: q.place(s)}
	about := block{Facts: []fact{
		{q.say("Id"), cell{Text: s.GetId(), Code: true}}, {q.say("Agent"), text(s.GetAgent())},
		{q.say("State"), q.doing(s)}, {q.say("Begun"), q.at(s.GetCreatedAtUs())},
		{q.say("Active"), q.at(s.GetActiveAtUs())}, {q.say("Rows"), text(fmt.Sprint(s.GetRows()))},
	}}
	if q.v.Owner() {
		about.Forms = []form{{
			Action: sessionsPath + "/delete", Label: q.say("Delete for good"), Summary: q.say("Delete"), Danger: true,
			Hidden: []hidden{{"id", s.GetId()}},
			Question: q.say("Delete this conversation with its whole history, for good? A running turn is stopped. Reminders " +
				"that were set in it are kept. `switchboard sessions export` keeps a copy."),
		}}
	}
	said := block{Title: q.say("What was said")}
	if len(rows) > rowsShown {
		rows = rows[1:]
		said.Links = []link{{
			Text: q.say("Earlier"), Href: fmt.Sprintf("%s?before=%d", sessionPath(s.GetId()), rows[0].GetSeq()),
		}}
	}
	if before > 0 {
		said.Links = append(said.Links, link{Text: q.say("Newest"), Href: sessionPath(s.GetId())})
	}
	if len(rows) == 0 {
		said.Text = []string{q.say("Nothing was said yet.")}
	}
	names := map[string]string{}
	for _, row := range rows {
		for _, c := range row.GetCalls() {
			names[c.GetCallId()] = c.GetName()
		}
		said.Said = append(said.Said, q.entry(s, row, names))
	}
	out.Blocks = []block{about, said}
	return out, nil
}

// entry returns a row of a transcript; names are the tools of earlier calls.
func (q *request) entry(s admin.NamedSession, row admin.Entry, names map[string]string) entry {
	e := entry{At: q.at(row.GetCreatedAtUs()), Text: row.GetText(), Kind: "other", Who: row.GetKind()}
	switch row.GetKind() {
	case contract.EntryInput:
		e.Kind, e.Who = "person", row.GetSender()
		if row.GetInputKind() != contract.InputUser {
			e.Kind, e.Who = "other", row.GetInputKind()+" "+row.GetSender()
		} else if e.Who == "" {
			e.Who = q.say("You")
		}
		if row.GetInput() != "" && q.v.Owner() {
			e.Href, e.HrefText = "/trace/"+url.PathEscape(row.GetInput()), q.say("Trace")
		}
	case contract.EntryAnswer:
		e.Kind, e.Who = "assistant", s.GetAgent()
		if row.GetModel() != "" {
			e.Who += " (" + row.GetModel() + ")"
		}
	case contract.EntryResult:
		tool := cmp.Or(names[row.GetCallId()], row.GetCallId())
		e.Who = q.say("the tool %s answers", tool)
		if row.GetIsError() {
			e.Kind, e.Who = "bad", q.say("the tool %s failed", tool)
		}
		e.Text = ""
		e.Calls = []call{{Title: shorten(admin.Gist(row.GetText()), 120), Text: row.GetText()}}
	}
	for _, c := range row.GetCalls() {
		e.Calls = append(e.Calls, call{Title: q.say("calls the tool %s", c.GetName()), Text: string(c.GetArguments())})
	}
	return e
}
