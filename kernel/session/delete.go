package session

import (
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Delete removes a session with its history. What runs and waits in it ends without a
// text; if its outbound is an extension, that gets an output that says so. The next
// message of its conversation begins a new session.
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
	if err := st.publishIdle(tx, s, false); err != nil {
		return err
	}
	return tx.DeleteSession(id)
}
