package api

import (
	"context"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// Session is one conversation of one agent.
type Session struct {
	ID           string     `json:"id"`
	Name         string     `json:"name" doc:"For people; two sessions may have the same."`
	Agent        string     `json:"agent"`
	Key          string     `json:"key"`
	State        string     `json:"state" doc:"idle; waiting: its agent is at work elsewhere; running"`
	Turns        int32      `json:"turns" doc:"Open ones; all but the last were interrupted."`
	Waiting      int32      `json:"waiting" doc:"Inputs that no turn has begun with."`
	Channel      string     `json:"channel,omitempty"`
	Conversation string     `json:"conversation,omitempty" doc:"The channel's address of it."`
	Thread       string     `json:"thread,omitempty"`
	Group        bool       `json:"group"`
	Ended        bool       `json:"ended" doc:"By /new: another session has the conversation now."`
	Rows         int64      `json:"rows" doc:"Of its transcript."`
	Title        string     `json:"title,omitempty"`
	Within       string     `json:"within,omitempty" doc:"The session in whose conversation it was made."`
	CreatedAt    *time.Time `json:"created_at,omitempty"`
	ActiveAt     *time.Time `json:"active_at,omitempty"`
}

// Entry is a row of a transcript.
type Entry struct {
	Seq       int64       `json:"seq"`
	Turn      int64       `json:"turn,omitempty"`
	Kind      string      `json:"kind" doc:"input, context, answer, result, note, summary"`
	InputKind string      `json:"input_kind,omitempty" doc:"user, task, message, result, notice, record"`
	Text      string      `json:"text"`
	Sender    string      `json:"sender,omitempty" doc:"Of an input."`
	Input     string      `json:"input,omitempty" doc:"Of an input: the event that carried it."`
	Model     string      `json:"model,omitempty" doc:"Of an answer."`
	Calls     []EntryCall `json:"calls,omitempty" doc:"Of an answer: the tools that it calls."`
	CallID    string      `json:"call_id,omitempty" doc:"Of a result."`
	IsError   bool        `json:"is_error,omitempty" doc:"Of a result."`
	At        *time.Time  `json:"at,omitempty"`
}

// EntryCall is a tool call.
type EntryCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments" doc:"As the model wrote them."`
}

type sessionQuery struct {
	Paging
	Agent string `query:"agent" maxLength:"300" doc:"Only those of one agent."`
}

type sessionResponse struct{ Body Session }

type entryQuery struct {
	ByID
	Paging
}

func (a *api) sessions(h huma.API) {
	add(h, op{
		method: http.MethodGet, path: "/sessions", id: "list-sessions", tag: "sessions", scope: door.ScopeSessions,
		summary: "List the sessions, the most recently active first",
		about:   "A session that becomes active meanwhile moves to the front, and may be missing from later pages.",
	}, a.listSessions)
	add(h, op{
		method: http.MethodGet, path: "/sessions/{id}", id: "get-session", tag: "sessions", scope: door.ScopeSessions,
		summary: "Show a session",
	}, func(ctx context.Context, v door.Visitor, in *ByID) (*sessionResponse, error) {
		s, err := a.session(ctx, v, in.ID)
		return &sessionResponse{s}, err
	})
	add(h, op{
		method: http.MethodGet, path: "/sessions/{id}/entries", id: "list-entries", tag: "sessions",
		scope: door.ScopeSessions, summary: "Read the transcript of a session, the newest row first",
	}, a.listEntries)
	add(h, op{
		method: http.MethodDelete, path: "/sessions/{id}", id: "delete-session", tag: "sessions", scope: door.ScopeSessions,
		summary: "Delete a session with its transcript, for good", status: http.StatusNoContent,
		about: "A running turn stops. The conversation starts over with the next message; reminders that were " +
			"set in it stay. The owner only.",
	}, func(ctx context.Context, v door.Visitor, in *ByID) (*struct{}, error) {
		s, err := a.session(ctx, v, in.ID)
		if err == nil && !v.Owner() {
			err = problem(http.StatusForbidden, typeScope, "only the owner deletes sessions; /new begins a new conversation")
		}
		if err == nil {
			_, err = a.Manage.DeleteSession(ctx, &adminv1.DeleteSessionRequest{Id: s.ID})
		}
		return &struct{}{}, err
	})
}

// sessionPlace is where a page of sessions begins: after those that were active at a time and
// have these ids, in a list that had Read rows up to there.
type sessionPlace struct {
	Active int64    `json:"a"`
	IDs    []string `json:"i"`
	Read   int      `json:"n"`
}

// before reports whether a session was on an earlier page.
func (p sessionPlace) before(s admin.NamedSession) bool {
	return s.GetActiveAtUs() > p.Active || s.GetActiveAtUs() == p.Active && slices.Contains(p.IDs, s.GetId())
}

// after returns the place after a session.
func (p sessionPlace) after(s admin.NamedSession, read int) sessionPlace {
	if s.GetActiveAtUs() != p.Active {
		p.IDs = nil
	}
	return sessionPlace{s.GetActiveAtUs(), append(slices.Clone(p.IDs), s.GetId()), read}
}

func (a *api) listSessions(ctx context.Context, v door.Visitor, in *sessionQuery) (*listing[Session], error) {
	begin := sessionPlace{Active: math.MaxInt64}
	if err := in.at(&begin); err != nil {
		return nil, err
	}
	theirs, err := a.sessionsOf(ctx, v)
	if err != nil {
		return nil, err
	}
	// The kernel lists from the newest on: read on until the page is full.
	for limit := min(max(begin.Read, 0), maxSessions/4) + in.Limit + 1; ; limit *= 2 {
		rows, err := admin.Sessions(ctx, a.Read, &adminv1.SessionsRequest{
			Agent: in.Agent, Limit: int32(min(limit, maxSessions)), //nolint:gosec // bounded
		})
		if err != nil {
			return nil, err
		}
		page, place := &listing[Session]{Page[Session]{Items: []Session{}}}, begin
		for i, s := range rows {
			switch {
			case begin.before(s) || theirs != nil && !theirs[s.GetId()]:
				continue
			case len(page.Body.Items) == in.Limit:
				page.Body.Next = cursor(place)
				return page, nil
			}
			page.Body.Items = append(page.Body.Items, sessionOf(s))
			place = place.after(s, i+1)
		}
		if len(rows) < limit || limit >= maxSessions {
			return page, nil
		}
	}
}

const maxSessions = 1 << 30

// sessionsOf returns the sessions that a visitor may read: their private ones and those made
// within them; nil: all.
func (a *api) sessionsOf(ctx context.Context, v door.Visitor) (map[string]bool, error) {
	if v.Owner() {
		return nil, nil
	}
	known, err := a.Read.People(ctx, &adminv1.PeopleRequest{})
	if err != nil {
		return nil, err
	}
	type address struct{ channel, conversation string }
	own := map[address]bool{}
	for _, p := range known.GetPeople() {
		for _, c := range p.GetAccounts() {
			if p.GetId() == v.Person {
				own[address{c.GetChannel(), c.GetUserId()}] = true
				own[address{c.GetChannel(), c.GetConversation()}] = c.GetConversation() != ""
			}
		}
	}
	rows, err := admin.Sessions(ctx, a.Read, &adminv1.SessionsRequest{Limit: maxSessions})
	if err != nil {
		return nil, err
	}
	theirs := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, s := range rows {
			if !theirs[s.GetId()] && (theirs[s.GetWithin()] ||
				!s.GetGroup() && own[address{s.GetChannel(), s.GetConversation()}]) {
				theirs[s.GetId()], grown = true, true
			}
		}
	}
	return theirs, nil
}

// session returns a session that a visitor may read.
func (a *api) session(ctx context.Context, v door.Visitor, id string) (Session, error) {
	theirs, err := a.sessionsOf(ctx, v)
	if err != nil {
		return Session{}, err
	}
	if theirs != nil && !theirs[id] {
		return Session{}, missing("session", id)
	}
	found, err := admin.Sessions(ctx, a.Read, &adminv1.SessionsRequest{Ids: []string{id}})
	if err != nil {
		return Session{}, err
	}
	if len(found) == 0 {
		return Session{}, missing("session", id)
	}
	return sessionOf(found[0]), nil
}

func (a *api) listEntries(ctx context.Context, v door.Visitor, in *entryQuery) (*listing[Entry], error) {
	var before int64
	if err := in.at(&before); err != nil {
		return nil, err
	}
	if _, err := a.session(ctx, v, in.ID); err != nil {
		return nil, err
	}
	rows, err := admin.History(ctx, a.Read, &adminv1.HistoryRequest{
		Session: in.ID, Before: before, Limit: int32(in.Limit + 1), //nolint:gosec // bounded
	})
	if err != nil {
		return nil, err
	}
	page := &listing[Entry]{Page[Entry]{Items: []Entry{}}}
	for _, row := range slices.Backward(rows) {
		if len(page.Body.Items) == in.Limit {
			page.Body.Next = cursor(page.Body.Items[in.Limit-1].Seq)
			break
		}
		page.Body.Items = append(page.Body.Items, entryOf(row))
	}
	return page, nil
}

func sessionOf(s admin.NamedSession) Session {
	return Session{
		ID: s.GetId(), Name: s.Name, Agent: s.GetAgent(), Key: s.GetKey(), State: s.GetState(), Turns: s.GetTurns(),
		Waiting: s.GetWaiting(), Channel: s.GetChannel(), Conversation: s.GetConversation(), Thread: s.GetThread(),
		Group: s.GetGroup(), Ended: s.GetEnded(), Rows: s.GetRows(), Title: s.GetTitle(), Within: s.GetWithin(),
		CreatedAt: moment(s.GetCreatedAtUs()), ActiveAt: moment(s.GetActiveAtUs()),
	}
}

func entryOf(e admin.Entry) Entry {
	x := Entry{
		Seq: e.GetSeq(), Turn: e.GetTurn(), Kind: e.GetKind(), InputKind: e.GetInputKind(), Text: e.GetText(),
		Sender: e.GetSender(), Input: e.GetInput(), Model: e.GetModel(), CallID: e.GetCallId(), IsError: e.GetIsError(),
		At: moment(e.GetCreatedAtUs()),
	}
	for _, c := range e.GetCalls() {
		x.Calls = append(x.Calls, EntryCall{c.GetCallId(), c.GetName(), string(c.GetArguments())})
	}
	return x
}
