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

// held is the session whose lane the committer holds, with the input that it was
// handed. named is the id of the session that an effect names; empty: none.
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
		return nil, in, fmt.Errorf("%w: %s ends the turn: nothing of it can follow in the same commit", contract.ErrInvalid,
			contract.TopicAgentOutput)
	}
	if err := json.Unmarshal(l.Event.GetPayload(), &in); err != nil {
		return nil, in, fmt.Errorf("%w: the input %s: %w", contract.ErrInvalid, l.Event.GetId(), err)
	}
	s, err := tx.Session(l.Session)
	if err == nil && s == nil {
		err = fmt.Errorf("%w: session %s was deleted", contract.ErrNotFound, journal.SessionID(l.Session))
	}
	return s, in, err
}

// append applies append. The first rows that are appended for an input
// begin its turn; a record has none.
func (st *Store) append(tx *bus.Tx, effect *busv1.Effect) (*busv1.EffectResult, error) {
	a := effect.GetAppend()
	s, in, err := st.held(tx, cmp.Or(a.GetSession(), "none"))
	if err != nil {
		return nil, err
	}
	if a.GetExpectedSeq() != s.HistorySeq {
		return nil, fmt.Errorf("%w: the history of session %s stands at row %d, not %d", contract.ErrConflict,
			a.GetSession(), s.HistorySeq, a.GetExpectedSeq())
	}
	var turn *journal.Turn
	over, text := false, ""
	if in.Kind != contract.InputRecord || len(s.Stack) > 0 {
		if len(s.Stack) == 0 {
			if over, text, err = st.overCap(tx, chain(s, tx.Lease.Event)); err != nil {
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
	calls, err := st.write(tx, s, turn, a.GetEntries())
	if err != nil {
		return nil, err
	}
	appended := &busv1.EffectResult{Session: a.GetSession(), Seq: s.HistorySeq, Calls: calls, Waiting: tx.WaitingBehind()}
	if over {
		err = st.stopHere(tx, s, turn, text)
	}
	return appended, err
}

// running is the turn that the rows belong to: the one on top of the stack, or
// a new one of the inputs that the rows name.
func (st *Store) running(
	tx *bus.Tx, s *journal.Session, in contract.AgentInput, rows []*busv1.Entry,
) (*journal.Turn, error) {
	if n := len(s.Stack); n > 0 {
		return tx.Turn(s.Stack[n-1])
	}
	inputs := []int64{tx.Lease.Event.GetSeq()}
	for _, row := range rows {
		seq := journal.ParseEventID(row.GetInput())
		if row.GetKind() == contract.EntryInput && seq != 0 && !slices.Contains(inputs, seq) {
			inputs = append(inputs, seq)
		}
	}
	if err := st.checkInputs(tx, s, in, inputs); err != nil {
		return nil, err
	}
	if in.Kind == contract.InputUser {
		s.UserAt = tx.Now
	}
	return st.begin(tx, s, &journal.Turn{Inputs: inputs, ReplyTo: in.ReplyTo}, tx.Lease.Event)
}

// begin begins a turn on top of the stack; it is counted with the input e.
func (st *Store) begin(tx *bus.Tx, s *journal.Session, turn *journal.Turn, e *busv1.Event) (*journal.Turn, error) {
	turn.Session, turn.Chain, turn.StartedAt = s.ID, chain(s, e), tx.Now
	if err := tx.PutTurn(turn); err != nil {
		return nil, err
	}
	s.Stack = append(s.Stack, turn.ID)
	return turn, nil
}

// checkInputs says whether these are the first input of the queue
// and the next ones that are of a user and have the same reply target, with none
// of those left out. What else waits between them keeps its place.
func (st *Store) checkInputs(tx *bus.Tx, s *journal.Session, first contract.AgentInput, inputs []int64) error {
	if len(inputs) == 1 {
		return nil
	}
	ds, events, err := st.Waiting(tx, s, maxSteering)
	if err != nil {
		return err
	}
	next := 0
	for i := 0; i < len(ds) && next < len(inputs); i++ {
		in := inputOf(events[i])
		fits := in.Kind == contract.InputUser && in.ReplyTo == first.ReplyTo
		switch named := ds[i].Seq == inputs[next]; {
		case named && !fits:
			return fmt.Errorf("%w: input %s cannot be part of the turn: only inputs of users with one reply target share a turn",
				contract.ErrInvalid, journal.EventID(inputs[next]))
		case named:
			next++
		case fits || next == 0:
			i = len(ds)
		}
	}
	if next < len(inputs) {
		return fmt.Errorf("%w: input %s does not stand at place %d of those in the queue of session %s that may share a turn",
			contract.ErrConflict, journal.EventID(inputs[next]), next+1, journal.SessionID(s.ID))
	}
	return nil
}

// write appends rows; the calls of an answer become open rows of their own.
func (st *Store) write(
	tx *bus.Tx, s *journal.Session, turn *journal.Turn, rows []*busv1.Entry,
) (calls []*busv1.Call, err error) {
	for _, row := range rows {
		s.HistorySeq++
		row.Seq, row.CreatedAtUs, row.Turn = s.HistorySeq, tx.Now, 0
		if turn != nil {
			row.Turn = turn.ID
		}
		for _, c := range row.GetCalls() {
			if turn == nil {
				return nil, fmt.Errorf("%w: a record calls no tools", contract.ErrInvalid)
			}
			if name, arguments, ok := contract.UsedTool(c.GetArguments()); ok && c.GetName() == contract.ToolUse {
				c.Name, c.Arguments = name, arguments
			}
			stored := &journal.Call{
				Session: s.ID, Turn: turn.ID, ProviderID: c.GetProviderId(), Name: c.GetName(), Arguments: c.GetArguments(),
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

// output applies the publishing of agent.output: it ends the turn of the lane together with
// the acknowledgement; one that has interrupted another ends by itself, and the
// lane goes on with that.
func (st *Store) output(tx *bus.Tx, payload []byte) (*busv1.EffectResult, error) {
	s, in, err := st.held(tx, "")
	if err != nil {
		return nil, err
	}
	above := len(s.Stack) > 1
	switch {
	case above && tx.Ending:
		return nil, fmt.Errorf("%w: the turn has interrupted another one: publish %s in a commit of its own, and go on with it",
			contract.ErrInvalid, contract.TopicAgentOutput)
	case !above && !tx.Ending:
		return nil, fmt.Errorf("%w: %s is published together with the acknowledgement of the turn's input",
			contract.ErrInvalid, contract.TopicAgentOutput)
	}
	var out contract.AgentOutput
	if err := json.Unmarshal(payload, &out); err != nil {
		return nil, fmt.Errorf("%w: payload of %s: %w", contract.ErrInvalid, contract.TopicAgentOutput, err)
	}
	turn, err := st.running(tx, s, in, nil)
	if err != nil {
		return nil, err
	}
	if !above {
		tx.Answered = true
		e, err := st.say(tx, s, turn, out, false)
		return &busv1.EffectResult{EventId: e.GetId()}, err
	}
	var e *busv1.Event
	err = st.about(tx, turn, func() (err error) {
		e, err = st.say(tx, s, turn, out, false)
		return err
	})
	if err != nil {
		return nil, err
	}
	tx.NextTurn()
	c, err := st.context(tx, tx.Lease.Event)
	return &busv1.EffectResult{EventId: e.GetId(), Turn: c}, err
}

// about applies f with the first input of the turn as the cause of what f
// publishes.
func (st *Store) about(tx *bus.Tx, turn *journal.Turn, f func() error) error {
	e, err := tx.Event(turn.Inputs[0])
	if err != nil {
		return err
	}
	if e == nil {
		return f()
	}
	return tx.Following(e, f)
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
	return fmt.Errorf("%w: an input is acknowledged together with %s, which ends its turn", contract.ErrInvalid,
		contract.TopicAgentOutput)
}

var outcomes = []string{
	contract.OutcomeOK, contract.OutcomeError, contract.OutcomeCancelled, contract.OutcomeTimeout,
	contract.OutcomeCapped, contract.OutcomeDead,
}

// end ends a turn with an outcome and a text.
func (st *Store) end(tx *bus.Tx, s *journal.Session, turn *journal.Turn, outcome, text string,
	capped bool) (*busv1.Event, error) {
	return st.say(tx, s, turn, contract.AgentOutput{Outcome: outcome, Text: text}, capped)
}

// say ends a turn: it closes the open calls, settles the inputs that no handler
// holds and publishes the output. The commit that ends the turn settles the held
// input. A turn beyond the bound does not begin a new count of hops.
func (st *Store) say(tx *bus.Tx, s *journal.Session, turn *journal.Turn, said contract.AgentOutput,
	capped bool) (*busv1.Event, error) {
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
	if _, err := st.write(tx, s, turn, rows); err != nil {
		return nil, err
	}
	for _, seq := range turn.Inputs {
		if tx.Lease != nil && tx.Lease.Event.GetSeq() == seq {
			continue
		}
		if err := tx.SettleAll(seq, "answered together with "+journal.EventID(turn.Inputs[0])); err != nil {
			return nil, err
		}
	}
	return st.publish(tx, s, turn, said, capped)
}

// publish publishes the output of a turn that has ended.
func (st *Store) publish(tx *bus.Tx, s *journal.Session, turn *journal.Turn, said contract.AgentOutput,
	capped bool) (*busv1.Event, error) {
	out := contract.AgentOutput{Session: journal.SessionID(s.ID), Turn: turn.ID, Outcome: turn.Outcome, Text: said.Text,
		ReplyTo: turn.ReplyTo}
	if err := st.forExtension(tx, s, turn, &out, said.Partial); err != nil {
		return nil, err
	}
	var options []bus.Option
	if capped {
		options = append(options, bus.KeepHops)
	}
	return tx.Emit(contract.TopicAgentOutput, journal.SessionID(s.ID), out, options...)
}

// Died ends the turn of an input whose delivery is dead, and those that have
// interrupted it: each is answered. A holder that drops its input may have
// answered itself.
func (st *Store) Died(tx *bus.Tx, e *busv1.Event, text string) error {
	if tx.Answered {
		return nil
	}
	st.bumpEpoch(journal.ParseSessionID(e.GetKey())) // its holder may take for stored what is not
	in := inputOf(e)
	s, err := tx.Session(journal.ParseSessionID(e.GetKey()))
	if err != nil || s == nil || in.Kind == "" || in.Kind == contract.InputRecord && len(s.Stack) == 0 {
		return err // nothing that could be answered
	}
	outcome := contract.OutcomeDead
	over, said, err := st.overCap(tx, chain(s, e))
	if err != nil {
		return err
	}
	if over = over && len(s.Stack) == 0; over {
		outcome, text = contract.OutcomeCapped, said
	}
	if len(s.Stack) == 0 {
		if _, err := st.beginForHolder(tx, s, e, in); err != nil {
			return err
		}
	}
	for len(s.Stack) > 1 {
		if err := st.endTop(tx, s, outcome, text, false, true); err != nil {
			return err
		}
	}
	return st.endTop(tx, s, outcome, text, over, false)
}

// endTop ends the turn on top of a stack. about: with its first input as the
// cause, and not that of the commit.
func (st *Store) endTop(tx *bus.Tx, s *journal.Session, outcome, text string, capped, about bool) error {
	turn, err := tx.Turn(s.Stack[len(s.Stack)-1])
	if err != nil {
		return err
	}
	end := func() error {
		_, err := st.end(tx, s, turn, outcome, text, capped)
		return err
	}
	if about {
		return st.about(tx, turn, end)
	}
	return end()
}

// beginForHolder begins a turn of one input that its holder has not begun, so that
// it can be ended.
func (st *Store) beginForHolder(tx *bus.Tx, s *journal.Session, e *busv1.Event,
	in contract.AgentInput) (*journal.Turn, error) {
	turn, err := st.begin(tx, s, &journal.Turn{Inputs: []int64{e.GetSeq()}, ReplyTo: in.ReplyTo}, e)
	if err == nil {
		_, err = st.write(tx, s, turn, []*busv1.Entry{inputRow(e, in)})
	}
	return turn, err
}

// cancel applies turn.cancel: it ends the running turn of a session and
// those that it interrupted, in the holder's place. Inputs that no turn has
// begun with are kept, unless they are to end, too. Where there is no session,
// nothing runs: it was deleted, and had its last word.
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
		return nil, fmt.Errorf("%w: the agent of a turn ends it with %s, not with turn.cancel", contract.ErrDenied,
			contract.TopicAgentOutput)
	}
	if c.GetWaiting() {
		err = st.cancelAll(tx, s, c.GetReason())
	} else {
		_, err = st.CancelTurns(tx, s, c.GetReason())
	}
	return &busv1.EffectResult{Session: journal.SessionID(s.ID)}, err
}

// CancelTurns is cancel for a session that was read; it returns how many turns
// it ended. A holder of the lane that has not begun a turn loses it too: its
// work has no effect any more, and its input is answered. A record is no turn, and
// is left to its holder.
func (st *Store) CancelTurns(tx *bus.Tx, s *journal.Session, text string) (ended int, err error) {
	if len(s.Stack) == 0 {
		_, waiting, err := st.Waiting(tx, s, 1)
		if err != nil || len(waiting) == 0 || !begins(inputOf(waiting[0])) {
			return 0, err
		}
	}
	held, err := takeBack(tx, s)
	if err != nil {
		return 0, err
	}
	if held != nil && len(s.Stack) == 0 {
		if _, err := st.beginForHolder(tx, s, held, inputOf(held)); err != nil {
			return 0, err
		}
	}
	st.bumpEpoch(s.ID)
	for ; len(s.Stack) > 0; ended++ {
		// Outside of any chain, what a turn leads to is counted with its own input.
		if err := st.endTop(tx, s, contract.OutcomeCancelled, text, false, tx.Cause() == nil); err != nil {
			return ended, err
		}
		text = "" // it is said once
	}
	return ended, nil
}
