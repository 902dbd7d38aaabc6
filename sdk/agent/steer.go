package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// steer lets newer messages of the user interrupt the turn, if there are any: one
// commit skips the calls that have not run and begins a turn for the messages. This
// turn continues after that one.
func (t *turn) steer() error {
	waiting, err := t.a.kernel.Pending(t.ctx)
	if err != nil {
		return fmt.Errorf("read the waiting inputs of session %s: %w", t.context.GetSession(), err)
	}
	t.written = nil
	inputs, rows, slow, err := t.backlog(waiting)
	switch {
	case err != nil:
		return err
	case len(inputs) == 0 && slow != nil && hasWaited(t.own()): // it has nothing else to do
		if err := t.await(slow); err != nil {
			return err
		}
		return t.steer()
	case len(inputs) == 0:
		t.waiting.Store(slow != nil)
		return nil
	}
	skipped := skippedRows(t.own())
	t.addPreamble(rows)
	session := t.context.GetSession()
	results, err := t.a.kernel.Commit(t.ctx,
		sdk.Raw(&busv1.Steer{Session: session, Inputs: inputs}),
		appendRows(session, t.history.seq+int64(len(skipped)), rows))
	switch {
	case errors.Is(err, contract.ErrConflict): // the queue or a call has changed: the next checkpoint tries again
		return t.sync(t.ctx)
	case errors.Is(err, contract.ErrInvalid): // it may not be interrupted
		t.waiting.Store(false)
		return nil
	case err != nil:
		return fmt.Errorf("interrupt the turn: %w", err)
	case len(results) != 2 || results[0].GetTurn() == nil:
		return fmt.Errorf("interrupt the turn: the kernel returned %d results and no new turn", len(results))
	}
	t.renumber(results[0].GetTurn().GetBelow())
	t.history.predict(skipped, t.id)
	t.context, t.id = results[0].GetTurn(), results[0].GetTurn().GetTurn()
	t.history.predict(rows, t.id)
	t.forgetTranscripts()
	t.waiting.Store(results[1].GetWaiting() > 0)
	t.fresh = nil
	return t.prepare()
}

// backlog returns the waiting messages that may interrupt the turn: a user's first one,
// and the later ones that share a turn with it. A recording that is not written down yet is
// slow: it and what follows it waits.
func (t *turn) backlog(waiting []*busv1.Event) (
	inputs []string, rows []*busv1.Entry, slow *transcript, err error,
) {
	var first contract.AgentInput
	var recorded []hearing
	var sent []time.Time
	for _, e := range waiting {
		var in contract.AgentInput
		if json.Unmarshal(e.GetPayload(), &in) != nil || in.Kind != contract.InputUser {
			continue
		}
		if len(inputs) == 0 {
			first = in
		}
		if !in.SharesTurn(first) || len(inputs) == maxInputs {
			continue
		}
		row := inputRow(e.GetId(), in)
		row.Backlog = true
		these := t.transcribe(row)
		if slow = unwritten(these); slow != nil {
			break
		}
		recorded = append(recorded, these...)
		inputs, rows = append(inputs, e.GetId()), append(rows, row)
		sent = append(sent, sentAt(time.UnixMicro(e.GetCreatedAtUs()), in))
	}
	notes, err := t.addTranscripts(recorded)
	rows = append(rows, notes...)
	if note := t.lateNote(sent); note != nil {
		rows = append([]*busv1.Entry{note}, rows...)
	}
	return inputs, rows, slow, err
}

// hasWaited reports whether the last call of a turn waited for something until a newer
// message came.
func hasWaited(own []row) bool {
	n := len(own)
	return n > 0 && own[n-1].GetKind() == contract.EntryResult && own[n-1].GetText() == contract.InterruptedCall
}

// skippedRows returns the rows that the kernel records for calls that did not run.
func skippedRows(own []row) (rows []*busv1.Entry) {
	for _, c := range unfinished(own) {
		rows = append(rows, &busv1.Entry{
			Kind: contract.EntryResult, CallId: c.GetCallId(), Text: contract.SkippedCall, IsError: true,
		})
	}
	return rows
}

// resumeBelow ends the turn and continues the one that it interrupted.
func (t *turn) resumeBelow(effects sdk.Effects) error {
	results, err := t.a.kernel.Commit(contextToEnd(t.ctx), effects...)
	if err != nil {
		return fmt.Errorf("end the interrupting turn: %w", err)
	}
	var below *busv1.TurnContext
	for _, r := range results {
		if r.GetTurn() != nil {
			below = r.GetTurn()
		}
	}
	if below == nil {
		return errors.New("end the interrupting turn: the kernel did not return the interrupted one")
	}
	t.history.predict(t.fresh, t.id)
	t.context, t.id, t.fresh = below, below.GetTurn(), nil
	t.waiting.Store(true)
	if own := t.own(); len(own) == 0 || own[0].GetKind() != contract.EntryInput || t.history.seq != below.GetHistorySeq() {
		if t.history, err = t.a.loadHistory(contextToEnd(t.ctx), below); err != nil {
			return err
		}
	}
	t.history.epoch = below.GetHistoryEpoch()
	if t.ctx.Err() == nil {
		err = t.prepare()
	}
	return err
}

// contextToEnd returns a ctx for ending a turn, which works even after its timeout.
func contextToEnd(ctx context.Context) context.Context {
	if errors.Is(context.Cause(ctx), sdk.ErrEnded) {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// wasInterrupted reports whether rows of another turn follow those of this one, so
// that the model needs a reminder.
func (t *turn) wasInterrupted() bool {
	n := len(t.history.rows)
	return t.context.GetInterruptions() > 0 && n > 0 && t.history.rows[n-1].turn != t.id
}

// reminder tells the model the state of the interrupted turn.
func (t *turn) reminder() *busv1.Entry {
	var asked string
	names := map[string]string{}
	var ran, skipped []string
	for _, r := range t.own() {
		switch r.GetKind() {
		case contract.EntryInput:
			if asked == "" {
				asked = cutRunes(strings.Join(strings.Fields(r.GetText()), " "), 200)
			}
		case contract.EntryAnswer:
			for _, c := range r.GetCalls() {
				names[c.GetCallId()] = c.GetName()
			}
		case contract.EntryResult:
			name := names[r.GetCallId()]
			if r.GetText() == contract.SkippedCall {
				skipped = append(skipped, name)
			} else {
				ran = append(ran, name)
			}
		}
	}
	text := fmt.Sprintf("The newer message was answered. Continue the earlier request now (%q).", asked)
	if len(ran) > 0 {
		text += fmt.Sprintf(" These calls have run, do not repeat them: %s.", strings.Join(ran, ", "))
	}
	if len(skipped) > 0 {
		text += fmt.Sprintf(" These were skipped and did not run: %s.", strings.Join(skipped, ", "))
	}
	return &busv1.Entry{Kind: contract.EntryNote, Text: text}
}
