package session

import (
	"fmt"

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

// Capped reports whether the turns of a chain are used up, and what to say about
// it: nothing, if it was said before.
func (st *Store) Capped(r journal.Reader, chain string) (over bool, text string, err error) {
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

// refuse answers for an input that was queued beyond the bound. It has no row in
// the history, which the holder of the lane may be writing.
func (st *Store) refuse(tx *bus.Tx, s *journal.Session, e *busv1.Event, in contract.AgentInput, text string) error {
	reason := fmt.Sprintf("the turns that followed from %s are used up", e.GetCorrelationId())
	if err := tx.SettleAll(e.GetSeq(), journal.Dead, reason); err != nil {
		return err
	}
	if _, err := st.begin(tx, s, []*busv1.Event{e}, in.ReplyTo, 0); err != nil {
		return err
	}
	_, err := st.endTop(tx, s, contract.AgentOutput{Outcome: contract.OutcomeCapped, Text: text}, true, bus.KeepHops)
	return err
}

// stopHere ends a turn that began beyond the bound, in its holder's place.
func (st *Store) stopHere(tx *bus.Tx, s *journal.Session, text string) error {
	if _, err := takeBack(tx, s); err != nil {
		return err
	}
	st.bumpEpoch(s.ID)
	_, err := st.endTop(tx, s, contract.AgentOutput{Outcome: contract.OutcomeCapped, Text: text}, true, bus.KeepHops)
	return err
}
