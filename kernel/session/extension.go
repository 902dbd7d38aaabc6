package session

import (
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
	n, err := st.cancelWaiting(tx, s, text, func(e *busv1.Event) bool { return records || begins(InputOf(e)) })
	return ended + n, err
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
	n, err := st.cancelWaiting(tx, s, "", which)
	return ended + n, err
}

// cancelWaiting ends the waiting inputs of a session that which accepts, and returns the
// number of outputs that it published.
func (st *Store) cancelWaiting(
	tx *bus.Tx, s *journal.Session, text string, which func(*busv1.Event) bool,
) (ended int, err error) {
	waiting, events, err := st.Waiting(tx, s, math.MaxInt32)
	if err != nil {
		return ended, err
	}
	for i, d := range waiting {
		if !which(events[i]) {
			continue
		}
		if err := tx.Settle(d, journal.Done, "cancelled before it began"); err != nil {
			return ended, err
		}
		if begins(InputOf(events[i])) {
			out := contract.AgentOutput{Outcome: contract.OutcomeCancelled, Text: text}
			n, err := st.endAll(tx, s, events[i], out, true)
			if ended += n; err != nil {
				return ended, err
			}
		}
	}
	return ended, nil
}
