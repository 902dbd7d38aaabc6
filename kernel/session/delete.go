package session

import (
	"fmt"
	"math"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Delete removes a session with its history. What runs in it ends without a
// word, and what waits for it is settled; an extension that it is for is told that
// it was cancelled. The conversation that it
// belonged to begins a new one with its next message.
func (st *Store) Delete(tx *bus.Tx, id int64) error {
	s, err := tx.Session(id)
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("%w: there is no session %s", contract.ErrNotFound, journal.SessionID(id))
	}
	if _, err := takeBack(tx, s); err != nil {
		return err
	}
	ended, err := st.CancelTurns(tx, s, "")
	if err != nil {
		return err
	}
	if s.OutboundKind == directory.OutboundExtension { // it waits for what is said here
		said, err := st.cancelWaiting(tx, s, "")
		if err == nil && ended+said == 0 {
			err = st.lastWord(tx, s)
		}
		if err != nil {
			return err
		}
	}
	if err := st.settleWaiting(tx, s, "the session was deleted"); err != nil {
		return err
	}
	if err := st.tellIdle(tx, s); err != nil {
		return err
	}
	return tx.DeleteSession(id)
}

// lastWord is the output of a session that is deleted while nothing is said in
// it: the extension that it is for hears no more of it.
func (st *Store) lastWord(tx *bus.Tx, s *journal.Session) error {
	_, err := tx.Emit(contract.TopicAgentOutput, journal.SessionID(s.ID), contract.AgentOutput{
		Session: journal.SessionID(s.ID), Outcome: contract.OutcomeCancelled, Extension: s.OutboundTarget, Key: s.Key,
	})
	return err
}

// settleWaiting settles what waits for a session and no handler has.
func (st *Store) settleWaiting(tx *bus.Tx, s *journal.Session, reason string) error {
	waiting, _, err := st.Waiting(tx, s, math.MaxInt32)
	if err != nil {
		return err
	}
	for _, d := range waiting {
		if err := tx.Settle(d, journal.Done, reason); err != nil {
			return err
		}
	}
	return nil
}
