package bus

import (
	"slices"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// A commit about a turn looks at its session many times, and reads it once. Each
// caller gets its own copy, which has no effect until PutSession.

// Session implements journal.Reader.
func (t *Tx) Session(id int64) (*journal.Session, error) {
	if s := t.sessions[id]; s != nil {
		return copyOf(s), nil
	}
	return t.remember(t.Tx.Session(id))
}

// SessionByKey implements journal.Reader.
func (t *Tx) SessionByKey(agent, key string) (*journal.Session, error) {
	for _, s := range t.sessions {
		if s.Agent == agent && s.Key == key {
			return copyOf(s), nil
		}
	}
	return t.remember(t.Tx.SessionByKey(agent, key))
}

// PutSession implements journal.Tx.
func (t *Tx) PutSession(s *journal.Session) error {
	err := t.Tx.PutSession(s)
	_, err = t.remember(s, err)
	return err
}

// DeleteSession implements journal.Tx.
func (t *Tx) DeleteSession(id int64) error {
	delete(t.sessions, id)
	return t.Tx.DeleteSession(id)
}

func (t *Tx) remember(s *journal.Session, err error) (*journal.Session, error) {
	if err != nil || s == nil {
		return nil, err
	}
	if t.sessions == nil {
		t.sessions = map[int64]*journal.Session{}
	}
	t.sessions[s.ID] = copyOf(s)
	return s, nil
}

func copyOf(s *journal.Session) *journal.Session {
	c := *s
	c.Stack, c.Idle = slices.Clone(s.Stack), slices.Clone(s.Idle)
	return &c
}
