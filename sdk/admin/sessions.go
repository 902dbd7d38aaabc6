package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// NamedSession is a session with its name in words: its conversation, or its title and
// the name of the session that it works for, such as "task a for main of
// telegram_channel 1001". A session without a title has its key as name. Names are for
// people: two sessions may have the same.
type NamedSession struct {
	*adminv1.Session
	Name string
	// Set by DescribeSessions:
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
	known := map[string]*adminv1.Session{}
	if err := addRoots(ctx, c, known, found); err != nil {
		return nil, err
	}
	named := []NamedSession{}
	for _, s := range found {
		named = append(named, NamedSession{Session: s, Name: nameOf(s, known)})
	}
	return named, nil
}

// DescribeSessions fills in Last and Memory.
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
		calls[i] = (&Object{}).With("id", c.GetCallId()).With("name", c.GetName())
		calls[i].With("arguments", string(c.GetArguments()))
	}
	o := JSON(e.Entry).Rename("created_at", "at").With("calls", calls)
	return o.Without("backlog").Without("covers").Without("thread").Without("told").MarshalJSON()
}

// RowID returns the id of a row of a session: s1.14.
func RowID(session string, seq int64) string { return fmt.Sprintf("%s.%d", session, seq) }

// ParseRowID returns the session and the number of a row; false: it is no such id.
func ParseRowID(id string) (session string, seq int64, ok bool) {
	session, number, _ := strings.Cut(id, ".")
	seq, err := strconv.ParseInt(number, 10, 64)
	return session, seq, strings.HasPrefix(session, "s") && err == nil && seq > 0
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

// deepest bounds the sessions that lead to the one that a name mentions.
const deepest = 8

// addRoots adds sessions, those that they were made within, and so on.
func addRoots(
	ctx context.Context, c adminv1.ReadClient, known map[string]*adminv1.Session, sessions []*adminv1.Session,
) error {
	for range deepest {
		var next []string
		for _, s := range sessions {
			known[s.GetId()] = s
		}
		for _, s := range sessions {
			if known[s.GetWithin()] == nil {
				next = append(next, s.GetWithin())
			}
		}
		sessions = nil
		for ids := range slices.Chunk(unique(next), maxNamed) {
			found, err := all(c.Sessions(ctx, &adminv1.SessionsRequest{Ids: ids}))
			if err != nil {
				return err
			}
			sessions = append(sessions, found...)
		}
	}
	return nil
}

// nameOf returns the name of a session, which mentions the outermost session that it
// was made within.
func nameOf(s *adminv1.Session, known map[string]*adminv1.Session) string {
	id, root := "", s
	for range deepest {
		if root.GetWithin() == "" {
			break
		}
		id, root = root.GetWithin(), known[root.GetWithin()]
	}
	switch {
	case id == "":
		return ownName(s)
	case root == nil: // deleted
		return ownName(s) + " of " + id
	}
	return ownName(s) + " of " + ownName(root)
}

func ownName(s *adminv1.Session) string {
	if s.GetChannel() == "" {
		return cmp.Or(s.GetTitle(), s.GetKey())
	}
	name := s.GetChannel() + " " + s.GetConversation()
	if s.GetThread() != "" {
		name += " thread " + s.GetThread()
	}
	return name
}
