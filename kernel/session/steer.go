package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// steer applies steer: newer messages of the user interrupt the turn on top of the
// stack. Its calls that have not begun are skipped, and a turn for the messages
// begins above it; when that has ended, the interrupted turn resumes.
func (st *Store) steer(tx *bus.Tx, effect *busv1.Effect) (*busv1.EffectResult, error) {
	e := effect.GetSteer()
	s, _, err := st.held(tx, cmp.Or(e.GetSession(), "none"))
	switch {
	case err != nil:
		return nil, err
	case len(s.Stack) == 0 || tx.Ending:
		return nil, fmt.Errorf("%w: session %s has no running turn to interrupt", contract.ErrInvalid, e.GetSession())
	}
	below, err := tx.Turn(s.Stack[len(s.Stack)-1])
	if err != nil {
		return nil, err
	}
	if below.Interrupted >= contract.MaxInterruptions {
		return nil, fmt.Errorf("%w: the turn, or one below it, was interrupted %d times and now runs to its end",
			contract.ErrInvalid, below.Interrupted)
	}
	inputs, err := st.share(tx, s, e.GetInputs(), contract.ErrConflict)
	if err != nil {
		return nil, err
	}
	if err := st.skip(tx, s, below); err != nil {
		return nil, err
	}
	times, err := st.interrupt(tx, s)
	if err != nil {
		return nil, err
	}
	if _, err := st.begin(tx, s, inputs, InputOf(inputs[0]), times); err != nil {
		return nil, err
	}
	s.UserAt = tx.Now
	if err := tx.PutSession(s); err != nil {
		return nil, err
	}
	tx.NextTurn()
	c, err := st.context(tx, tx.Lease.Event)
	return &busv1.EffectResult{Session: e.GetSession(), Seq: s.HistorySeq, Turn: c}, err
}

// interrupt counts an interruption for every turn of a stack. It returns the highest
// count, which the new turn begins with: interrupting it delays those below, too.
func (st *Store) interrupt(tx *bus.Tx, s *journal.Session) (most int, err error) {
	for _, id := range s.Stack {
		turn, err := tx.Turn(id)
		if err != nil {
			return 0, err
		}
		turn.Interrupted++
		most = max(most, turn.Interrupted)
		if err := tx.PutTurn(turn); err != nil {
			return 0, err
		}
	}
	return most, nil
}

// share returns the inputs with these ids, for a new turn. They must be the first of
// those that can share one: waiting messages of users that no turn has begun with,
// of the person and with the reply target of the first. Other inputs between them keep their
// places. unfit is the class of the error for an input that can't share a turn.
func (st *Store) share(tx *bus.Tx, s *journal.Session, ids []string, unfit error) (inputs []*busv1.Event, err error) {
	begun, err := st.begun(tx, s)
	if err != nil {
		return nil, err
	}
	_, events, err := st.Waiting(tx, s, maxSteering+len(begun))
	if err != nil {
		return nil, err
	}
	var fit []string // their ids
	for _, e := range events {
		in := InputOf(e)
		free := in.Kind == contract.InputUser && !slices.Contains(begun, e.GetSeq())
		switch {
		case free && (len(inputs) == 0 || in.SharesTurn(InputOf(inputs[0]))):
			inputs, fit = append(inputs, e), append(fit, e.GetId())
		case slices.Contains(ids, e.GetId()):
			return nil, fmt.Errorf("%w: input %s cannot share a turn: only messages of one person in one place can",
				unfit, e.GetId())
		}
	}
	if n := len(ids); n == 0 || n > len(fit) || !slices.Equal(ids, fit[:n]) {
		return nil, fmt.Errorf("%w: the inputs %v are not the first of those that can share a turn: %v",
			contract.ErrConflict, ids, fit)
	}
	return inputs[:len(ids)], nil
}

// MaxPending is how many waiting inputs a run loop gets.
const MaxPending = 100

// maxSteering is how far into a queue a turn looks for inputs to share.
const maxSteering = 200

// skip closes the calls of a turn that have not begun. It fails while one runs,
// because its outcome would be lost.
func (st *Store) skip(tx *bus.Tx, s *journal.Session, turn *journal.Turn) error {
	open, err := tx.OpenCalls(turn.ID)
	if err != nil {
		return err
	}
	for _, c := range open {
		if st.calls.Running(c.ID) || c.State == journal.CallRunning {
			return fmt.Errorf("%w: call %s of the turn is running", contract.ErrConflict, journal.CallID(c.ID))
		}
	}
	rows, err := st.close(tx, open, contract.SkippedCall)
	if err != nil || len(rows) == 0 {
		return err
	}
	_, err = st.write(tx, s, turn.ID, rows)
	return err
}

// Interruptible reports whether a waiting message of the user may interrupt the turn
// of the lease.
func (st *Store) Interruptible(r journal.Reader, all *bus.Bus, l *bus.Lease) (bool, error) {
	s, err := r.Session(l.Session)
	if err != nil || s == nil || len(s.Stack) == 0 {
		return false, err
	}
	turn, err := r.Turn(s.Stack[len(s.Stack)-1])
	if err != nil || turn.Interrupted >= contract.MaxInterruptions {
		return false, err
	}
	events, err := st.Pending(r, all, l)
	return slices.ContainsFunc(events, func(e *busv1.Event) bool {
		return InputOf(e).Kind == contract.InputUser
	}), err
}

// begun returns the inputs of the turns of a session that have not ended.
func (st *Store) begun(r journal.Reader, s *journal.Session) (inputs []int64, err error) {
	for _, id := range s.Stack {
		turn, err := r.Turn(id)
		if err != nil {
			return nil, err
		}
		if turn != nil {
			inputs = append(inputs, turn.Inputs...)
		}
	}
	return inputs, nil
}

// withdraw refuses to withdraw an input of a turn that has not ended.
func (st *Store) withdraw(tx *bus.Tx, e *busv1.Event) (bus.Withdrawal, error) {
	if !strings.HasPrefix(e.GetTopic(), contract.TopicAgentInput) {
		return bus.WithdrawPending, nil
	}
	s, err := tx.Session(journal.ParseSessionID(e.GetKey()))
	if err != nil || s == nil {
		return bus.WithdrawPending, err
	}
	inputs, err := st.begun(tx, s)
	if slices.Contains(inputs, e.GetSeq()) {
		return bus.WithdrawTooLate, err
	}
	return bus.WithdrawPending, err
}

// Pending returns the inputs of a session that wait after that of the lease, and that
// no turn has begun with: the first MaxPending of them.
func (st *Store) Pending(r journal.Reader, all *bus.Bus, l *bus.Lease) ([]*busv1.Event, error) {
	s, err := r.Session(l.Session)
	if err != nil || s == nil || l.Call != 0 {
		return nil, err
	}
	taken, err := st.begun(r, s)
	if err != nil {
		return nil, err
	}
	taken = append(taken, l.Event.GetSeq())
	_, events, err := all.Peek(r, s.Agent, contract.TopicAgentInput+s.Agent, l.Event.GetKey(), MaxPending+len(taken))
	events = slices.DeleteFunc(events, func(e *busv1.Event) bool { return slices.Contains(taken, e.GetSeq()) })
	return events[:min(len(events), MaxPending)], err
}
