package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

const closedCall = "cancelled: the turn ended before this call had a result; its outcome is unknown"

// held returns the session whose lane the committer holds, with the input that was
// delivered. named is the id of the session that an effect names; empty: none.
func (st *Store) held(tx *bus.Tx, named string) (*journal.Session, contract.AgentInput, error) {
	var in contract.AgentInput
	l := tx.Lease
	if l == nil || l.Session == 0 || l.Call != 0 {
		return nil, in, fmt.Errorf("%w: only the holder of a session's lane may do that", contract.ErrDenied)
	}
	if id := journal.SessionID(l.Session); named != "" && named != id {
		return nil, in, fmt.Errorf("%w: the lane is that of session %s, not of %s", contract.ErrDenied, id, named)
	}
	if tx.Answered {
		return nil, in, fmt.Errorf("%w: agent.output ends the turn: nothing can follow in its commit", contract.ErrInvalid)
	}
	if err := json.Unmarshal(l.Event.GetPayload(), &in); err != nil {
		return nil, in, fmt.Errorf("%w: decode input %s: %w", contract.ErrInvalid, l.Event.GetId(), err)
	}
	s, err := tx.Session(l.Session)
	if err == nil && s == nil {
		err = fmt.Errorf("%w: session %s was deleted", contract.ErrNotFound, journal.SessionID(l.Session))
	}
	return s, in, err
}

// append applies append. The first rows for an input begin its turn; a record has
// none.
func (st *Store) append(tx *bus.Tx, effect *busv1.Effect) (*busv1.EffectResult, error) {
	a := effect.GetAppend()
	s, in, err := st.held(tx, cmp.Or(a.GetSession(), "none"))
	if err != nil {
		return nil, err
	}
	if a.GetExpectedSeq() != s.HistorySeq {
		return nil, fmt.Errorf("%w: the history of session %s ends with row %d, not %d", contract.ErrConflict,
			a.GetSession(), s.HistorySeq, a.GetExpectedSeq())
	}
	turn, over, text := &journal.Turn{}, false, ""
	if in.Kind != contract.InputRecord || len(s.Stack) > 0 {
		if len(s.Stack) == 0 {
			if over, text, err = st.Capped(tx, chain(s, tx.Lease.Event), InputOf(tx.Lease.Event).Language); err != nil {
				return nil, err
			}
		}
		if over && tx.Ending {
			return nil, fmt.Errorf("%w: the turns that followed from %s are used up", contract.ErrInvalid,
				tx.Lease.Event.GetCorrelationId())
		}
		if turn, err = st.running(tx, s, in, a.GetEntries()); err != nil {
			return nil, err
		}
	}
	calls, err := st.write(tx, s, turn.ID, a.GetEntries())
	if err == nil {
		err = keepBlobs(tx, s.ID, a.GetBlobs())
	}
	if err != nil {
		return nil, err
	}
	appended := &busv1.EffectResult{Session: a.GetSession(), Seq: s.HistorySeq, Calls: calls, Waiting: tx.WaitingBehind()}
	if over {
		err = st.stopHere(tx, s, text)
	}
	return appended, err
}

// running returns the turn that the rows belong to: the one on top of the stack, or a
// new one of the held input and the others that the rows name.
func (st *Store) running(
	tx *bus.Tx, s *journal.Session, in contract.AgentInput, rows []*busv1.Entry,
) (*journal.Turn, error) {
	if n := len(s.Stack); n > 0 {
		return tx.Turn(s.Stack[n-1])
	}
	ids := []string{tx.Lease.Event.GetId()}
	for _, row := range rows {
		if id := row.GetInput(); row.GetKind() == contract.EntryInput && id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	inputs := []*busv1.Event{tx.Lease.Event}
	if len(ids) > 1 {
		var err error
		if inputs, err = st.share(tx, s, ids, contract.ErrInvalid); err != nil {
			return nil, err
		}
	}
	if in.Kind == contract.InputUser {
		s.UserAt = tx.Now
	}
	return st.begin(tx, s, inputs, in, 0)
}

// begin begins a turn on top of the stack; it counts toward the chain of its first
// input, which in is.
func (st *Store) begin(
	tx *bus.Tx, s *journal.Session, inputs []*busv1.Event, in contract.AgentInput, interrupted int,
) (*journal.Turn, error) {
	turn := &journal.Turn{
		Session: s.ID, ReplyTo: in.ReplyTo, Person: in.Person, Chain: chain(s, inputs[0]), Interrupted: interrupted,
		StartedAt: tx.Now,
	}
	for _, e := range inputs {
		turn.Inputs = append(turn.Inputs, e.GetSeq())
	}
	if err := tx.PutTurn(turn); err != nil {
		return nil, err
	}
	s.Stack = append(s.Stack, turn.ID)
	return turn, nil
}

// write appends rows of a turn, or records; the calls of an answer become open rows
// of their own.
func (st *Store) write(
	tx *bus.Tx, s *journal.Session, turn int64, rows []*busv1.Entry,
) (calls []*busv1.Call, err error) {
	for _, row := range rows {
		s.HistorySeq++
		row.Seq, row.CreatedAtUs, row.Turn = s.HistorySeq, tx.Now, turn
		for _, c := range row.GetCalls() {
			if turn == 0 {
				return nil, fmt.Errorf("%w: a record calls no tools", contract.ErrInvalid)
			}
			if name, arguments, ok := contract.UsedTool(c.GetArguments()); ok && c.GetName() == contract.ToolUse {
				c.Name, c.Arguments = name, arguments
			}
			stored := &journal.Call{
				Session: s.ID, Turn: turn, ProviderID: c.GetProviderId(), Name: c.GetName(), Arguments: c.GetArguments(),
				StartedAt: tx.Now,
			}
			if err := tx.PutCall(stored); err != nil {
				return nil, err
			}
			c.CallId, c.State = journal.CallID(stored.ID), journal.CallOpen.String()
			calls = append(calls, c)
		}
	}
	if err := tx.AppendHistory(s.ID, rows); err != nil {
		return nil, err
	}
	s.ActiveAt = tx.Now
	return calls, tx.PutSession(s)
}

// output applies the publishing of agent.output: it ends the turn of the lane,
// together with the acknowledgement. A turn that interrupted another ends without
// one, and the lane goes on with the other turn.
func (st *Store) output(tx *bus.Tx, payload []byte) (*busv1.EffectResult, error) {
	s, in, err := st.held(tx, "")
	if err != nil {
		return nil, err
	}
	above := len(s.Stack) > 1
	switch {
	case above && tx.Ending:
		return nil, fmt.Errorf("%w: the turn interrupted another one: publish agent.output in a commit without the "+
			"acknowledgement, and go on with the other turn", contract.ErrInvalid)
	case !above && !tx.Ending:
		return nil, fmt.Errorf("%w: agent.output needs the acknowledgement of its input beside it", contract.ErrInvalid)
	}
	var out contract.AgentOutput
	if err := json.Unmarshal(payload, &out); err != nil {
		return nil, fmt.Errorf("%w: decode the payload of %s: %w", contract.ErrInvalid, contract.TopicAgentOutput, err)
	}
	if _, err := st.running(tx, s, in, nil); err != nil {
		return nil, err
	}
	tx.Answered = !above
	e, err := st.endTop(tx, s, out, true)
	if err != nil {
		return nil, err
	}
	result := &busv1.EffectResult{EventId: e.GetId()}
	if above {
		tx.NextTurn()
		result.Turn, err = st.context(tx, tx.Lease.Event)
	}
	return result, err
}

// acked refuses the acknowledgement of an input without the end of its turn: the
// sender would wait forever. A record has no turn.
func (st *Store) acked(tx *bus.Tx, _ string) error {
	if tx.Answered || tx.Lease.Session == 0 {
		return nil
	}
	s, in, err := st.held(tx, "")
	if err != nil || in.Kind == contract.InputRecord && len(s.Stack) == 0 {
		return err
	}
	return fmt.Errorf("%w: the acknowledgement of an input needs agent.output beside it", contract.ErrInvalid)
}

var outcomes = []string{
	contract.OutcomeOK, contract.OutcomeError, contract.OutcomeCancelled, contract.OutcomeTimeout,
	contract.OutcomeCapped, contract.OutcomeDead,
}

// endTop ends the turn on top of the stack: it closes the open calls, settles the
// inputs that no handler holds and publishes the output. The commit that ends the
// turn settles the held input. With itself, the output follows from the first input
// of the turn, otherwise from the cause of the commit.
func (st *Store) endTop(
	tx *bus.Tx, s *journal.Session, said contract.AgentOutput, itself bool, options ...bus.Option,
) (e *busv1.Event, err error) {
	turn, err := tx.Turn(s.Stack[len(s.Stack)-1])
	if err != nil {
		return nil, err
	}
	if !slices.Contains(outcomes, said.Outcome) {
		return nil, fmt.Errorf("%w: %q is no outcome of a turn: one of %v", contract.ErrInvalid, said.Outcome, outcomes)
	}
	open, err := tx.OpenCalls(turn.ID)
	if err != nil {
		return nil, err
	}
	rows, err := st.close(tx, open, closedCall)
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		st.bumpEpoch(s.ID)
	}
	turn.Outcome, turn.EndedAt = said.Outcome, tx.Now
	if err := tx.PutTurn(turn); err != nil {
		return nil, err
	}
	s.Stack = slices.DeleteFunc(s.Stack, func(id int64) bool { return id == turn.ID })
	if _, err := st.write(tx, s, turn.ID, rows); err != nil {
		return nil, err
	}
	for _, seq := range turn.Inputs {
		if tx.Lease != nil && tx.Lease.Event.GetSeq() == seq {
			continue
		}
		if err := tx.SettleAll(seq, journal.Done, "answered together with "+journal.EventID(turn.Inputs[0])); err != nil {
			return nil, err
		}
	}
	id := journal.SessionID(s.ID)
	out := contract.AgentOutput{Session: id, Turn: turn.ID, Outcome: turn.Outcome, Text: said.Text, ReplyTo: turn.ReplyTo}
	if err := st.forExtension(tx, s, turn, &out, said.Partial); err != nil {
		return nil, err
	}
	cause := tx.Cause()
	if itself {
		if cause, err = tx.Event(turn.Inputs[0]); err != nil {
			return nil, err
		}
	}
	err = tx.Following(cause, func() (err error) {
		e, err = tx.Emit(contract.TopicAgentOutput, id, out, options...)
		return err
	})
	return e, err
}

// Died ends the turn of an input whose delivery is dead, and those that interrupted
// it, each with an output. A holder that drops its input may have published it.
func (st *Store) Died(tx *bus.Tx, e *busv1.Event, text string) error {
	if tx.Answered {
		return nil
	}
	st.bumpEpoch(journal.ParseSessionID(e.GetKey())) // its holder may have cached rows that were not stored
	in := InputOf(e)
	s, err := tx.Session(journal.ParseSessionID(e.GetKey()))
	if err != nil || s == nil || in.Kind == "" || in.Kind == contract.InputRecord && len(s.Stack) == 0 {
		return err // nothing to end
	}
	out, options := contract.AgentOutput{Outcome: contract.OutcomeDead, Text: text}, []bus.Option(nil)
	over, said, err := st.Capped(tx, chain(s, e), InputOf(e).Language)
	if err != nil {
		return err
	}
	if over && len(s.Stack) == 0 {
		out.Outcome, out.Text, options = contract.OutcomeCapped, said, []bus.Option{bus.KeepHops}
	}
	_, err = st.endAll(tx, s, e, out, true, options...)
	return err
}

// endAll ends the turns of a session for its holder, and returns their number. It begins
// the turn of an input that its holder has not begun, so that it can be ended; nil: there
// is none. Of the turns that are cancelled, only the first says so.
func (st *Store) endAll(
	tx *bus.Tx, s *journal.Session, unbegun *busv1.Event, out contract.AgentOutput, itself bool, options ...bus.Option,
) (ended int, err error) {
	st.bumpEpoch(s.ID)
	if unbegun != nil && len(s.Stack) == 0 {
		in := InputOf(unbegun)
		turn, err := st.begin(tx, s, []*busv1.Event{unbegun}, in, 0)
		if err != nil {
			return 0, err
		}
		if _, err := st.write(tx, s, turn.ID, []*busv1.Entry{inputRow(unbegun, in)}); err != nil {
			return 0, err
		}
	}
	for ; len(s.Stack) > 0; ended++ {
		if _, err := st.endTop(tx, s, out, itself, options...); err != nil {
			return ended, err
		}
		if out.Outcome == contract.OutcomeCancelled {
			out.Text = ""
		}
	}
	return ended, nil
}

// cancel applies turn.cancel: it ends the running turn of a session, and those that it
// interrupted, for the holder. Inputs that no turn has begun with are kept, unless
// waiting is set. A deleted session has published its last output.
func (st *Store) cancel(tx *bus.Tx, effect *busv1.Effect) (*busv1.EffectResult, error) {
	c := effect.GetTurnCancel()
	s, err := named(tx, c.GetSession(), c.GetAgent(), c.GetKey())
	if err != nil {
		return nil, err
	}
	if s == nil {
		return &busv1.EffectResult{}, nil
	}
	if l := tx.Lease; l != nil && l.Session == s.ID {
		return nil, fmt.Errorf("%w: the agent of a turn ends it with agent.output, not with turn.cancel", contract.ErrDenied)
	}
	if c.GetWaiting() {
		_, err = st.cancelAll(tx, s, c.GetReason(), false)
	} else {
		_, err = st.CancelTurns(tx, s, c.GetReason())
	}
	return &busv1.EffectResult{Session: journal.SessionID(s.ID)}, err
}

// CancelTurns ends the turns of a session, and returns their number. A holder that has
// not begun a turn loses the lane too: its input ends with an output, and its work has
// no effect. A record is no turn, and stays with its holder.
func (st *Store) CancelTurns(tx *bus.Tx, s *journal.Session, text string) (ended int, err error) {
	if len(s.Stack) == 0 {
		_, waiting, err := st.Waiting(tx, s, 1)
		if err != nil || len(waiting) == 0 || !begins(InputOf(waiting[0])) {
			return 0, err
		}
	}
	held, err := takeBack(tx, s)
	if err != nil {
		return 0, err
	}
	// Without a cause, the output follows from the input of the turn.
	return st.endAll(tx, s, held, contract.AgentOutput{Outcome: contract.OutcomeCancelled, Text: text}, tx.Cause() == nil)
}
