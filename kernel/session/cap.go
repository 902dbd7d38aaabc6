package session

import (
	"fmt"
	"math"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// The turns that follow from one event are bounded: agents, tasks and links that
// keep each other busy come to an end. An input beyond the bound dies where it
// is queued, before a model is asked. One that was queued earlier ends with its
// first rows. Each is answered with an output, so that no sender waits for it, but
// only the first one has a text, and none begins a new count of hops.
//
// A session may name a piece of work: its turns are counted for that, so that a
// hundred pieces that follow from one event are bounded each, and not together.

// chain is what a turn is counted for.
func chain(s *journal.Session, e *busv1.Event) string {
	if s.Chain == "" {
		return e.GetCorrelationId()
	}
	return e.GetCorrelationId() + "/" + s.Chain
}

// Capped says whether the turns of a chain are used up.
func (st *Store) Capped(r journal.Reader, chain string) (bool, error) {
	over, _, err := st.overCap(r, chain)
	return over, err
}

// overCap is Capped with what to say of it: nothing, if it was said before.
func (st *Store) overCap(r journal.Reader, chain string) (over bool, text string, err error) {
	limit := st.directory.Current().MaxTurns
	if limit <= 0 {
		return false, "", nil
	}
	n, err := r.TurnsOf(chain, limit+1)
	if err != nil || n < limit {
		return false, "", err
	}
	if n == limit {
		text = fmt.Sprintf("I have stopped here: %d turns followed from one event without you, and that is the limit. "+
			"Write to me if I am to go on.", limit)
	}
	return true, text, nil
}

// refuse answers for an input that was queued beyond the bound.
func (st *Store) refuse(tx *bus.Tx, s *journal.Session, e *busv1.Event, in contract.AgentInput, text string) error {
	waiting, _, err := st.Waiting(tx, s, math.MaxInt32)
	if err != nil {
		return err
	}
	for _, d := range waiting {
		if d.Seq != e.GetSeq() {
			continue
		}
		if err := tx.Settle(d, journal.Dead, fmt.Sprintf("the turns that followed from %s are used up",
			e.GetCorrelationId())); err != nil {
			return err
		}
	}
	turn := &journal.Turn{
		Session: s.ID, Inputs: []int64{e.GetSeq()}, ReplyTo: in.ReplyTo, Chain: chain(s, e),
		Outcome: contract.OutcomeCapped, StartedAt: tx.Now, EndedAt: tx.Now,
	}
	if err := tx.PutTurn(turn); err != nil {
		return err
	}
	return tx.Following(e, func() error {
		_, err := st.publish(tx, s, turn, contract.AgentOutput{Text: text}, true)
		return err
	})
}

// stopHere ends a turn that began beyond the bound, in its holder's place.
func (st *Store) stopHere(tx *bus.Tx, s *journal.Session, turn *journal.Turn, text string) error {
	if _, err := takeBack(tx, s); err != nil {
		return err
	}
	st.bumpEpoch(s.ID)
	_, err := st.end(tx, s, turn, contract.OutcomeCapped, text, true)
	return err
}
