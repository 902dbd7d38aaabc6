package session

import (
	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// Delete removes a session with its history. What runs and waits in it ends without a
// text; if its outbound is an extension, that gets an output that says so. The next
// message of its conversation begins a new session.
func (st *Store) Delete(tx *bus.Tx, id string) error {
	s, err := Find(tx, id)
	if err != nil {
		return err
	}
	if _, err := takeBack(tx, s); err != nil {
		return err
	}
	ended, err := st.cancelAll(tx, s, "", true)
	if err == nil && ended == 0 && s.OutboundKind == directory.OutboundExtension {
		_, err = tx.Emit(contract.TopicAgentOutput, id, contract.AgentOutput{
			Session: id, Outcome: contract.OutcomeCancelled, Extension: s.OutboundTarget, Key: s.Key,
		})
	}
	if err != nil {
		return err
	}
	if err := st.publishIdle(tx, s, false); err != nil {
		return err
	}
	return tx.DeleteSession(s.ID)
}
