package session

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// maxPartial is how much is told of a turn that did not end well, the newest of
// it.
const maxPartial = 16 << 10

// forExtension completes the output of a session whose outbound is an extension
// with what that needs to know what it is about.
func (b *Book) forExtension(r journal.Reader, s *journal.Session, turn *journal.Turn, out *contract.AgentOutput) error {
	if s.OutboundKind != directory.OutboundExtension {
		return nil
	}
	out.Extension, out.Key = s.OutboundTarget, s.Key
	heard, err := r.Event(turn.Inputs[0])
	if err != nil {
		return err
	}
	var in contract.AgentInput
	if json.Unmarshal(heard.GetPayload(), &in) == nil {
		out.Thread = in.Thread
	}
	if turn.Outcome == contract.OutcomeOK {
		return nil
	}
	rows, _, err := r.History(s.ID, 0, 16*maxPartial)
	if err != nil {
		return err
	}
	var said []string
	for _, row := range rows {
		if text := strings.TrimSpace(row.GetText()); row.GetTurn() == turn.ID && row.GetKind() == contract.EntryAnswer && text != "" && text != out.Text {
			said = append(said, text)
		}
	}
	out.Partial = strings.Join(said, "\n\n")
	if over := len(out.Partial) - maxPartial; over > 0 {
		out.Partial = "[cut]\n" + strings.ToValidUTF8(out.Partial[over:], "")
	}
	return nil
}

// cancelWaiting answers for the inputs of a session that no turn has begun with,
// as if each had been a turn that was cancelled. Records are kept.
func (b *Book) cancelWaiting(tx *bus.Tx, s *journal.Session, text string) error {
	b.disturb(s.ID)
	waiting, events, err := b.Waiting(tx, s, math.MaxInt32)
	if err != nil {
		return err
	}
	for i, d := range waiting {
		var in contract.AgentInput
		if json.Unmarshal(events[i].GetPayload(), &in) != nil || in.Kind == contract.InputRecord {
			continue
		}
		if err := tx.Settle(d, journal.Done, "cancelled before it began"); err != nil {
			return err
		}
		turn := &journal.Turn{
			Session: s.ID, Inputs: []int64{d.Seq}, ReplyTo: in.ReplyTo, Correlation: events[i].GetCorrelationId(), StartedAt: tx.Now,
			Outcome: contract.OutcomeCancelled, EndedAt: tx.Now,
		}
		if err := tx.PutTurn(turn); err != nil {
			return err
		}
		row := &busv1.Entry{Kind: contract.EntryInput, Text: in.Text, Sender: in.Sender, Input: events[i].GetId(), InputKind: in.Kind, Thread: in.Thread}
		if _, err := b.write(tx, s, turn, []*busv1.Entry{row}); err != nil {
			return err
		}
		if err := tx.Following(events[i], func() error {
			_, err := b.publish(tx, s, turn, text, false)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
