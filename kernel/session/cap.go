package session

import (
	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// The turns that follow from one event are limited: this stops agents, tasks and
// links that keep each other busy. An input beyond the limit becomes a dead letter
// when it is queued, before a model is asked. The turn of one that was queued
// earlier ends with its first rows. Each has an output, so that no sender waits
// forever, but only the first output has a text, and none resets the hop count.
//
// A session may name a chain: its turns count toward that, so that a hundred pieces
// of work that follow from one event have a limit each.

// chain returns the chain that a turn of a session counts toward.
func chain(s *journal.Session, e *busv1.Event) string {
	if s.Chain == "" {
		return e.GetCorrelationId()
	}
	return e.GetCorrelationId() + "/" + s.Chain
}

// Capped reports whether the turns of a chain are used up, and what to say about
// it: nothing, if an earlier output said it.
func (st *Store) Capped(r journal.Reader, chain, language string) (over bool, text string, err error) {
	limit := st.directory.Current().MaxTurns
	if limit <= 0 {
		return false, "", nil
	}
	n, err := r.TurnsOf(chain, limit+1)
	if err != nil || n < limit {
		return false, "", err
	}
	if n == limit {
		text = words.Say(language, "I stopped here: %d turns followed from one event without you, which is the limit. "+
			"Write to me, and I'll go on.", limit)
	}
	return true, text, nil
}

// refuse ends an input as it is queued. It has no row in the history, which the holder
// of the lane may be writing.
func (st *Store) refuse(tx *bus.Tx, s *journal.Session, e *busv1.Event, in contract.AgentInput,
	out contract.AgentOutput, state journal.DeliveryState, reason string) error {
	if err := tx.SettleAll(e.GetSeq(), state, reason); err != nil {
		return err
	}
	if _, err := st.begin(tx, s, []*busv1.Event{e}, in, 0); err != nil {
		return err
	}
	_, err := st.endTop(tx, s, out, true, bus.KeepHops)
	return err
}

// stopHere ends a turn that began beyond the limit, for its holder.
func (st *Store) stopHere(tx *bus.Tx, s *journal.Session, text string) error {
	if _, err := takeBack(tx, s); err != nil {
		return err
	}
	_, err := st.endAll(tx, s, nil, contract.AgentOutput{Outcome: contract.OutcomeCapped, Text: text}, true, bus.KeepHops)
	return err
}
