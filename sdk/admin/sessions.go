package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// NamedSession is a session with its name in words: the key "task:t1:s5:a" is
// "task a for main of telegram_channel 1001". A key of another form is its own
// name. Names are for reading: two sessions may have the same.
type NamedSession struct {
	*adminv1.Session
	Name string
	// Of a session that was described:
	Last   string   // the beginning of the newest text
	Memory []string // scopes that its agent may read and write
}

// MarshalJSON implements json.Marshaler.
func (s NamedSession) MarshalJSON() ([]byte, error) { return s.JSON().MarshalJSON() }

// JSON returns the session as JSON.
func (s NamedSession) JSON() *Object {
	o := JSON(s.Session).With("memory", append([]string{}, s.Memory...)).With("name", s.Name)
	if s.Last != "" {
		o.With("last", s.Last)
	}
	return o
}

// Sessions returns the sessions that a request selects.
func Sessions(ctx context.Context, c adminv1.ReadClient, q *adminv1.SessionsRequest) ([]NamedSession, error) {
	found, err := all(c.Sessions(ctx, q))
	if err != nil {
		return nil, err
	}
	names := namer{sessions: map[string]*adminv1.Session{}, parents: map[string]string{}, givers: map[string]string{}}
	if err := names.read(ctx, c, found); err != nil {
		return nil, err
	}
	named := []NamedSession{}
	for _, s := range found {
		named = append(named, NamedSession{Session: s, Name: names.of(s, deepest)})
	}
	return named, nil
}

// DescribeSessions adds to sessions what their agents remember and what was said
// last.
func DescribeSessions(ctx context.Context, c adminv1.ReadClient, sessions []NamedSession) error {
	dir, err := c.Directory(ctx, &adminv1.DirectoryRequest{})
	if err != nil {
		return err
	}
	memory := map[string][]string{}
	for _, a := range dir.GetAgents() {
		memory[a.GetId()] = a.GetSpec().GetMemory()
	}
	for i := range sessions {
		s := &sessions[i]
		s.Memory = memory[s.GetAgent()]
		newest, err := History(ctx, c, &adminv1.HistoryRequest{Session: s.GetId(), Limit: 1})
		if err != nil && !errors.Is(err, contract.ErrNotFound) { // it may be deleted meanwhile
			return err
		}
		if len(newest) > 0 {
			s.Last = shortenTo(newest[0].GetText(), lastRunes)
		}
	}
	return nil
}

const lastRunes = 80

// Entry is a row of a history.
type Entry struct{ *busv1.Entry }

// MarshalJSON implements json.Marshaler.
func (e Entry) MarshalJSON() ([]byte, error) {
	calls := make([]*Object, len(e.GetCalls()))
	for i, c := range e.GetCalls() {
		calls[i] = (&Object{}).With("id", c.GetCallId()).With("name", c.GetName()).With("arguments", string(c.GetArguments()))
	}
	o := JSON(e.Entry).Rename("created_at", "at").With("calls", calls)
	return o.Without("backlog").Without("covers").Without("thread").Without("told").MarshalJSON()
}

// History returns the rows of a session that a request selects.
func History(ctx context.Context, c adminv1.ReadClient, q *adminv1.HistoryRequest) ([]Entry, error) {
	rows, err := all(c.History(ctx, q))
	entries := make([]Entry, len(rows))
	for i, row := range rows {
		entries[i].Entry = row
	}
	return entries, err
}

// Session returns one session.
func Session(ctx context.Context, c adminv1.ReadClient, id string) (NamedSession, error) {
	found, err := Sessions(ctx, c, &adminv1.SessionsRequest{Ids: []string{id}})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%w: there is no session %q", contract.ErrNotFound, id)
	}
	if err != nil {
		return NamedSession{}, err
	}
	return found[0], nil
}

// deepest bounds the sessions that a name mentions.
const deepest = 8

// namer knows the sessions that names mention.
type namer struct {
	sessions map[string]*adminv1.Session
	parents  map[string]string // of a session: the one that its work is for
	givers   map[string]string // of a task: who gave it
}

// read reads the parents of sessions, theirs, and so on.
func (n *namer) read(ctx context.Context, c adminv1.ReadClient, sessions []*adminv1.Session) error {
	for depth := 0; len(sessions) > 0 && depth <= deepest; depth++ {
		var next []string
		calls := map[string]string{} // by session
		for _, s := range sessions {
			n.sessions[s.GetId()] = s
			switch parts := strings.Split(s.GetKey(), ":"); {
			case s.GetChannel() != "":
			case parts[0] == "task" && len(parts) == 4: // the id, the session of the conversation, the name
				n.parents[s.GetId()] = parts[2]
				first, err := History(ctx, c, &adminv1.HistoryRequest{Session: s.GetId(), Before: 2, Limit: 1})
				if err != nil && !errors.Is(err, contract.ErrNotFound) {
					return err
				}
				if len(first) > 0 {
					n.givers[s.GetId()] = first[0].GetSender()
				}
			case parts[0] == "link" && len(parts) == 4: // the agents, the session that shares its readers
				n.parents[s.GetId()] = parts[3]
			case parts[0] == "task" && len(parts) == 2: // the call that gave it
				calls[s.GetId()] = parts[1]
			}
		}
		if err := n.readCallers(ctx, c, calls); err != nil {
			return err
		}
		for _, s := range sessions {
			if p := n.parents[s.GetId()]; p != "" && n.sessions[p] == nil && !slices.Contains(next, p) {
				next = append(next, p)
			}
		}
		sessions = nil
		for ids := range slices.Chunk(next, maxNamed) {
			found, err := all(c.Sessions(ctx, &adminv1.SessionsRequest{Ids: ids}))
			if err != nil {
				return err
			}
			sessions = append(sessions, found...)
		}
	}
	return nil
}

// readCallers finds the sessions in which calls were made.
func (n *namer) readCallers(ctx context.Context, c adminv1.ReadClient, calls map[string]string) error {
	if len(calls) == 0 {
		return nil
	}
	q := &adminv1.CallsRequest{}
	for _, call := range calls {
		q.Ids = append(q.Ids, call)
	}
	found, err := all(c.Calls(ctx, q))
	for _, call := range found {
		for session, of := range calls {
			if of == call.GetId() {
				n.parents[session] = call.GetSession()
			}
		}
	}
	return err
}

// of is the name of a session.
func (n *namer) of(s *adminv1.Session, left int) string {
	switch parts := strings.Split(s.GetKey(), ":"); {
	case s.GetChannel() != "":
		name := s.GetChannel() + " " + s.GetConversation()
		if s.GetThread() != "" {
			name += " thread " + s.GetThread()
		}
		return name
	case parts[0] == "link" && (len(parts) == 3 || len(parts) == 4):
		return "link " + plain(parts[1]) + " → " + plain(parts[2]) + n.parent(s, " of ", left)
	case parts[0] == "job" && len(parts) > 1 && parts[len(parts)-1] != "":
		return "job " + plain(parts[len(parts)-1])
	case parts[0] == "task" && len(parts) == 4:
		return "task " + plain(parts[3]) + " for " + cmp.Or(n.givers[s.GetId()], "an agent") + n.parent(s, " of ", left)
	case parts[0] == "task" && len(parts) == 2:
		return "task" + n.parent(s, " for ", left)
	}
	return s.GetKey()
}

// parent mentions the session that a session's work is for, if it has one.
func (n *namer) parent(s *adminv1.Session, as string, left int) string {
	id := n.parents[s.GetId()]
	p := n.sessions[id]
	switch {
	case id == "":
		return ""
	case p == nil || left == 0:
		return as + id
	}
	return as + n.of(p, left-1)
}

// plain is a part of a key as it was before it was escaped.
func plain(part string) string {
	if s, err := url.PathUnescape(part); err == nil {
		return s
	}
	return part
}
