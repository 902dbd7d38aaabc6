package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// late is the age at which a message says when it was sent.
	late = 5 * time.Minute
	// maxHeard is the most inputs that one turn begins with.
	maxHeard = 50
)

// hear is the rows that a turn begins with: its input and, behind that of a
// user, the users' inputs directly behind it that are answered at the same place.
func (t *turn) hear(ctx context.Context, d sdk.Delivery, first contract.AgentInput) ([]*busv1.Entry, error) {
	rows := t.heardRows(nil, d.ID, d.CreatedAt, first)
	if t.context.GetWaiting() == 0 || first.Kind != contract.InputUser {
		return rows, nil
	}
	waiting, err := t.a.kernel.Pending(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what waits for session %s: %w", t.context.GetSession(), err)
	}
	for i, e := range waiting {
		var in contract.AgentInput
		if json.Unmarshal(e.GetPayload(), &in) != nil || in.Kind != contract.InputUser || in.ReplyTo != first.ReplyTo || i+1 >= maxHeard {
			break
		}
		rows = t.heardRows(rows, e.GetId(), time.UnixMicro(e.GetCreatedAtUs()), in)
	}
	return rows, nil //nolint:nilerr // what cannot be read ends in a turn of its own
}

// heardRows appends the row of an input, behind a note if it comes late.
func (t *turn) heardRows(rows []*busv1.Entry, id string, accepted time.Time, in contract.AgentInput) []*busv1.Entry {
	sent := accepted
	if in.SentAt > 0 {
		sent = time.Unix(in.SentAt, 0)
	}
	if age := time.Since(sent); in.Kind == contract.InputUser && !sent.IsZero() && age >= late {
		rows = append(rows, &busv1.Entry{Kind: contract.EntryNote, Text: fmt.Sprintf(
			"The next message was sent at %s, %s before it could be read.", sent.In(t.zone).Format(time.RFC3339), roughly(age))})
	}
	return append(rows, inputRow(id, in))
}

func inputRow(id string, in contract.AgentInput) *busv1.Entry {
	return &busv1.Entry{Kind: contract.EntryInput, Input: id, InputKind: in.Kind, Sender: in.Sender, Text: in.Text}
}

// roughly is a duration in its largest unit.
func roughly(d time.Duration) string {
	unit, n := "minute", int(d/time.Minute)
	switch {
	case d >= 48*time.Hour:
		unit, n = "day", int(d/(24*time.Hour))
	case d >= 2*time.Hour:
		unit, n = "hour", int(d/time.Hour)
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%d %s", n, unit)
}

// record takes note of something without a turn: the model reads it when it is
// asked next.
func (a *Agent) record(d sdk.Delivery, in contract.AgentInput) sdk.Effects {
	entries := []*busv1.Entry{inputRow(d.ID, in)}
	if h := a.histories.take(d.Turn.GetSession()); h.current(d.Turn) {
		h.predict(entries, -a.turns.Add(1))
		a.histories.put(h)
	}
	return sdk.Effects{appendRows(d.Turn.GetSession(), d.Turn.GetHistorySeq(), entries)}
}
