package session

import (
	"math"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
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
	waiting, events, err := st.Waiting(tx, s, math.MaxInt32)
	if err != nil {
		return ended, err
	}
	for i, d := range waiting {
		in := InputOf(events[i])
		if !begins(in) && !records {
			continue
		}
		if err := tx.Settle(d, journal.Done, "cancelled before it began"); err != nil {
			return ended, err
		}
		if begins(in) {
			out := contract.AgentOutput{Outcome: contract.OutcomeCancelled, Text: text}
			n, err := st.endAll(tx, s, events[i], out, true)
			if ended += n; err != nil {
				return ended, err
			}
		}
	}
	return ended, nil
}
