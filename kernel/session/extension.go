package session

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// maxPartial is how many bytes of a turn that failed reach the extension, the newest
// ones.
const maxPartial = 16 << 10

// forExtension adds to the output of a session whose outbound is an extension what
// the extension needs to identify it; partial is the text of an unfinished answer.
func (st *Store) forExtension(r journal.Reader, s *journal.Session, turn *journal.Turn, out *contract.AgentOutput,
	partial string) error {
	if s.OutboundKind != directory.OutboundExtension {
		return nil
	}
	out.Extension, out.Key = s.OutboundTarget, s.Key
	heard, err := r.Event(turn.Inputs[0])
	if err != nil {
		return err
	}
	out.Input = bus.OwnInput(s.OutboundTarget, heard)
	out.Thread = InputOf(heard).Thread
	if turn.Outcome == contract.OutcomeOK {
		return nil
	}
	rows, _, err := r.History(s.ID, 0, 16*maxPartial)
	if err != nil {
		return err
	}
	var said []string
	for _, row := range rows {
		if text := strings.TrimSpace(row.GetText()); row.GetTurn() == turn.ID && row.GetKind() == contract.EntryAnswer &&
			text != "" && text != out.Text {
			said = append(said, text)
		}
	}
	if partial != "" {
		said = append(said, partial)
		out.Text = strings.TrimSpace(strings.TrimPrefix(out.Text, partial))
	}
	out.Partial = strings.Join(said, "\n\n")
	if over := len(out.Partial) - maxPartial; over > 0 {
		out.Partial = "[cut]\n" + strings.ToValidUTF8(out.Partial[over:], "")
	}
	return nil
}

// cancelAll ends what runs and waits in a session, and returns the number of outputs
// that it published. A waiting input ends as a turn that was cancelled. Records end
// too if records is set; otherwise they are kept.
func (st *Store) cancelAll(tx *bus.Tx, s *journal.Session, text string, records bool) (ended int, err error) {
	if ended, err = st.CancelTurns(tx, s, text); err != nil {
		return ended, err
	}
	dropped, err := st.cancelWaiting(tx, s, text, func(e *busv1.Event) bool { return records || begins(InputOf(e)) })
	return ended + len(dropped), err
}

// Stop ends without a text what runs in a session because a person stopped it and, with
// all, what waits. It returns the number of turns, and the inputs that waited.
func (st *Store) Stop(
	tx *bus.Tx, s *journal.Session, all bool,
) (ended int, dropped []contract.AgentInput, err error) {
	if ended, err = st.CancelTurns(tx, s, ""); err != nil || !all {
		return ended, nil, err
	}
	dropped, err = st.cancelWaiting(tx, s, "", func(e *busv1.Event) bool { return begins(InputOf(e)) })
	if err == nil && len(dropped) > 0 {
		err = st.Queue(tx, s, unanswered)
	}
	return ended, dropped, errors.Join(err, st.publishIdle(tx, s, true))
}

// unanswered tells an agent what it never got.
var unanswered = contract.AgentInput{
	Kind: contract.InputRecord, Sender: contract.KernelSource,
	Text: "The user stopped everything. The messages since your last answer were dropped and not answered: " +
		"don't act on them unless the user asks again.",
}

// CancelInputs ends without a text what runs and waits in a session because of inputs
// that mine accepts, and returns the number of outputs. Records are kept.
func (st *Store) CancelInputs(tx *bus.Tx, s *journal.Session, mine func(*busv1.Event) bool) (ended int, err error) {
	begun, err := st.begun(tx, s)
	if err != nil {
		return 0, err
	}
	_, events, err := st.Waiting(tx, s, math.MaxInt32)
	if err != nil {
		return 0, err
	}
	which := func(e *busv1.Event) bool { return begins(InputOf(e)) && mine(e) }
	for i, e := range events {
		if (slices.Contains(begun, e.GetSeq()) || len(begun) == 0 && i == 0) && which(e) {
			if ended, err = st.CancelTurns(tx, s, ""); err != nil {
				return ended, err
			}
			break
		}
	}
	dropped, err := st.cancelWaiting(tx, s, "", which)
	return ended + len(dropped), err
}

// cancelWaiting ends the waiting inputs of a session that which accepts. It returns
// those that would have begun a turn. For each of them it publishes an output, unless a
// turn is running.
func (st *Store) cancelWaiting(
	tx *bus.Tx, s *journal.Session, text string, which func(*busv1.Event) bool,
) (dropped []contract.AgentInput, err error) {
	waiting, events, err := st.Waiting(tx, s, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	for i, d := range waiting {
		if !which(events[i]) {
			continue
		}
		if err := tx.Settle(d, journal.Done, "cancelled before it began"); err != nil {
			return nil, err
		}
		in := InputOf(events[i])
		if !begins(in) {
			continue
		}
		dropped = append(dropped, in)
		if len(s.Stack) > 0 { // a turn that is not cancelled goes on
			continue
		}
		out := contract.AgentOutput{Outcome: contract.OutcomeCancelled, Text: text}
		if _, err := st.endAll(tx, s, events[i], out, true); err != nil {
			return nil, err
		}
	}
	return dropped, nil
}
