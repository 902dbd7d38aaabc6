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
	// lateAfter is the age at which a note tells the model when a message was sent.
	lateAfter = 5 * time.Minute
	// outage is the age from which messages are answered together even if other
	// inputs came between them.
	outage = time.Hour
	// maxInputs is the number of inputs with which one turn may begin.
	maxInputs = 100
)

// inputRows returns the rows with which a turn begins: its input with the context in
// its meta and, if it is a user's, the users' inputs that directly follow it and share
// a turn with it. After an outage they need not follow directly.
func (t *turn) inputRows(ctx context.Context, d sdk.Delivery, first contract.AgentInput) ([]*busv1.Entry, error) {
	rows := append([]*busv1.Entry{inputRow(d.ID, first)}, metaContext(first)...)
	if first.Kind != contract.InputUser {
		return rows, nil
	}
	sent := []time.Time{sentAt(d.CreatedAt, first)}
	if t.context.GetWaiting() > 0 {
		waiting, err := t.a.kernel.Pending(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the waiting inputs of session %s: %w", t.context.GetSession(), err)
		}
		t.waiting.Store(false)
		for _, e := range waiting {
			var in contract.AgentInput
			ours := json.Unmarshal(e.GetPayload(), &in) == nil && in.SharesTurn(first)
			if !ours && time.Since(sent[0]) < outage || len(sent) == maxInputs {
				t.waiting.Store(true)
				break
			}
			if ours {
				rows = append(rows, inputRow(e.GetId(), in))
				sent = append(sent, sentAt(time.UnixMicro(e.GetCreatedAtUs()), in))
			}
		}
	}
	if note := t.lateNote(sent); note != nil {
		rows = append([]*busv1.Entry{note}, rows...)
	}
	return rows, nil
}

// sentAt returns when a person wrote an input.
func sentAt(accepted time.Time, in contract.AgentInput) time.Time {
	if in.SentAt > 0 {
		return time.Unix(in.SentAt, 0)
	}
	return accepted
}

// lateNote returns a note that messages arrived late; nil: they are recent.
func (t *turn) lateNote(sent []time.Time) *busv1.Entry {
	if len(sent) == 0 || sent[0].IsZero() || time.Since(sent[0]) < lateAfter {
		return nil
	}
	first, age := sent[0].In(t.zone).Format(time.RFC3339), roughly(time.Since(sent[0]))
	text := fmt.Sprintf("The next message was sent at %s, %s before it could be read.", first, age)
	if n := len(sent); n > 1 {
		text = fmt.Sprintf("The next %d messages were sent from %s on, %s before they could be read, "+
			"the last one at %s. Answer them together.",
			n, first, age, sent[n-1].In(t.zone).Format(time.RFC3339))
	}
	return &busv1.Entry{Kind: contract.EntryNote, Text: text}
}

func inputRow(id string, in contract.AgentInput) *busv1.Entry {
	return &busv1.Entry{
		Kind: contract.EntryInput, Input: id, InputKind: in.Kind, Sender: in.Sender, Text: in.Text, Thread: in.Thread,
		ForwardedFrom: in.ForwardedFrom, Attachments: attachments(in),
		Quote: in.Quote.Row(),
	}
}

// roughly formats a duration in its largest unit.
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

// record records an input without a turn. The model reads it in the next request.
func (a *Agent) record(d sdk.Delivery, in contract.AgentInput) sdk.Effects {
	entries := []*busv1.Entry{inputRow(d.ID, in)}
	if h := a.histories.take(d.Turn.GetSession()); h.current(d.Turn) {
		h.predict(entries, -a.turns.Add(1))
		a.histories.put(h)
	}
	return sdk.Effects{appendRows(d.Turn.GetSession(), d.Turn.GetHistorySeq(), entries)}
}
