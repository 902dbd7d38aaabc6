package session

import (
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Start marks a call whose tool must not run twice.
func (st *Store) Start(tx *bus.Tx, id int64, provisional string) error {
	c, err := st.open(tx, id)
	if err != nil {
		return err
	}
	c.State, c.Result, c.StartedAt = journal.CallRunning, provisional, tx.Now
	return tx.PutCall(c)
}

// Finish stores the result of a call and its row of the history. A closed call
// takes no result.
func (st *Store) Finish(tx *bus.Tx, id int64, content string, isError bool) error {
	c, err := st.open(tx, id)
	if err != nil {
		return err
	}
	s, err := tx.Session(c.Session)
	if err != nil {
		return err
	}
	worker := c.Result
	c.State, c.Result, c.IsError, c.EndedAt = journal.CallFinished, content, isError, tx.Now
	if err := tx.PutCall(c); err != nil {
		return err
	}
	row := &busv1.Entry{Kind: contract.EntryResult, CallId: journal.CallID(id), Text: content, IsError: isError}
	if _, err := st.write(tx, s, c.Turn, []*busv1.Entry{row}); err != nil {
		return err
	}
	return st.endWork(tx, id, worker)
}

// MarkSend stores that the turn of a call has sent something to a channel, and so
// has the turn that it works for.
func (st *Store) MarkSend(tx *bus.Tx, id int64) error {
	for id != 0 {
		c, err := tx.Call(id)
		if err != nil || c == nil {
			return err
		}
		turn, err := tx.Turn(c.Turn)
		if err != nil || turn == nil || turn.UsedSend {
			return err
		}
		turn.UsedSend = true
		if err := tx.PutTurn(turn); err != nil {
			return err
		}
		s, err := tx.Session(c.Session)
		if err != nil || s == nil {
			return err
		}
		id = WorksFor(s)
	}
	return nil
}

// close ends calls without a result, and what works for them; it returns their rows
// of the history.
func (st *Store) close(tx *bus.Tx, open []journal.Call, why string) (rows []*busv1.Entry, err error) {
	for _, c := range open {
		c.State, c.EndedAt = journal.CallClosed, tx.Now
		if err := tx.PutCall(&c); err != nil {
			return nil, err
		}
		tx.After(func() { st.calls.Stop(c.ID) })
		if err := st.endWork(tx, c.ID, c.Result); err != nil {
			return nil, err
		}
		rows = append(rows, &busv1.Entry{Kind: contract.EntryResult, CallId: journal.CallID(c.ID), Text: why, IsError: true})
	}
	return rows, nil
}

func (st *Store) open(tx *bus.Tx, id int64) (*journal.Call, error) {
	c, err := tx.Call(id)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, fmt.Errorf("%w: call %s was deleted with its session", contract.ErrStale, journal.CallID(id))
	}
	if c.State.Ended() {
		return nil, fmt.Errorf("%w: call %s is %s", contract.ErrStale, journal.CallID(id), c.State)
	}
	return c, nil
}
