package session

import (
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// whenIdle applies session.idle. A second request before the event changes nothing. A
// session that no longer exists counts as idle, so the commit does not fail.
func (st *Store) whenIdle(tx *bus.Tx, effect *busv1.Effect) (*busv1.EffectResult, error) {
	e := effect.GetSessionIdle()
	s, err := tx.Session(journal.ParseSessionID(e.GetSession()))
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		_, err := tx.Emit(contract.TopicSessionIdle+tx.Actor.ID, e.GetSession(),
			contract.SessionIdle{Session: e.GetSession()})
		return &busv1.EffectResult{}, err
	case slices.Contains(s.Idle, tx.Actor.ID):
		return &busv1.EffectResult{}, nil
	}
	s.Idle = append(s.Idle, tx.Actor.ID)
	if err := tx.PutSession(s); err != nil {
		return nil, err
	}
	return &busv1.EffectResult{}, st.rested(tx, s.ID)
}

// rested publishes that a session is idle to the extensions that asked, if it is.
func (st *Store) rested(tx *bus.Tx, session int64) error {
	s, err := tx.Session(session)
	if err != nil || s == nil || len(s.Idle) == 0 {
		return err
	}
	if busy, err := st.busy(tx, s); err != nil || busy {
		return err
	}
	return st.publishIdle(tx, s, false)
}

// publishIdle publishes that a session is idle to all extensions that asked, and whether
// a person stopped it.
func (st *Store) publishIdle(tx *bus.Tx, s *journal.Session, stopped bool) error {
	told := s.Idle
	s.Idle = nil
	if err := tx.PutSession(s); err != nil {
		return err
	}
	id := journal.SessionID(s.ID)
	for _, extension := range told {
		idle := contract.SessionIdle{Session: id, Stopped: stopped}
		if _, err := tx.Emit(contract.TopicSessionIdle+extension, id, idle); err != nil {
			return err
		}
	}
	return nil
}

// manyRecords is how many records may wait for a session that counts as idle.
const manyRecords = 100

// busy reports whether a session has a turn, or an input that begins one.
func (st *Store) busy(tx *bus.Tx, s *journal.Session) (bool, error) {
	if len(s.Stack) > 0 {
		return true, nil
	}
	_, inputs, err := st.Waiting(tx, s, manyRecords)
	if err != nil || len(inputs) == manyRecords {
		return true, err
	}
	return slices.ContainsFunc(inputs, func(e *busv1.Event) bool { return begins(InputOf(e)) }), nil
}
