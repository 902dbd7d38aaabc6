package session

import (
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// A session with a key task:<call id> or task:<call id>:... works for that tool
// call, whose tool has made it. While the call runs, its row holds the session's
// id. The commit that ends the call also ends what runs and waits in the session,
// and what works for that.

// WorksFor returns the call that a session works for; 0: none.
func WorksFor(s *journal.Session) int64 { return callOf(s.Key) }

func callOf(key string) int64 {
	rest, ok := strings.CutPrefix(key, "task:")
	if !ok {
		return 0
	}
	call, _, _ := strings.Cut(rest, ":")
	return journal.ParseCallID(call)
}

// assign has a session work for a call. From then on the call counts as running.
func (st *Store) assign(tx *bus.Tx, s *journal.Session, call int64) error {
	c, err := st.open(tx, call)
	if err != nil {
		return err
	}
	id := journal.SessionID(s.ID)
	if c.Result != "" && c.Result != id {
		return fmt.Errorf("%w: session %s works for call %s already", contract.ErrInvalid, c.Result, journal.CallID(call))
	}
	return st.Start(tx, call, id)
}

// endWork ends what runs and waits in the session that works for a call.
func (st *Store) endWork(tx *bus.Tx, call int64, session string) error {
	id := journal.ParseSessionID(session)
	if id == 0 {
		return nil
	}
	s, err := tx.Session(id)
	if err != nil || s == nil || WorksFor(s) != call {
		return err
	}
	_, err = st.cancelAll(tx, s, "", false)
	return err
}
