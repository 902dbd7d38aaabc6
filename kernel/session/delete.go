package session

import (
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Delete removes a session with its history. What runs in it ends without a word,
// and what waits for it is settled; an extension that it is for is told that it was
// cancelled. The conversation that it belonged to begins a new one with its next
// message.
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
	ended, err := st.cancelAll(tx, s, "", true)
	if err == nil && ended == 0 && s.OutboundKind == directory.OutboundExtension {
		_, err = tx.Emit(contract.TopicAgentOutput, journal.SessionID(id), contract.AgentOutput{
			Session: journal.SessionID(id), Outcome: contract.OutcomeCancelled, Extension: s.OutboundTarget, Key: s.Key,
		})
	}
	if err != nil {
		return err
	}
	if err := st.tellIdle(tx, s); err != nil {
		return err
	}
	return tx.DeleteSession(id)
}
