package sqlite

import (
	"slices"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// A commit about a turn looks at its session many times, and its update reads it once.
// Each caller gets its own copy, which has no effect until PutSession.

func (t *tx) remember(s *journal.Session) {
	if t.store == nil { // a view
		return
	}
	if t.known == nil {
		t.known = map[int64]*journal.Session{}
	}
	t.known[s.ID] = copyOf(s)
}

// forget forgets the sessions: another update begins, or something was rolled back.
func (t *tx) forget() { clear(t.known) }

func copyOf(s *journal.Session) *journal.Session {
	c := *s
	c.Stack, c.Idle = slices.Clone(s.Stack), slices.Clone(s.Idle)
	return &c
}
