package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// errTime ends a turn that has used its time.
var errTime = errors.New("the turn has used its time")

const (
	// maxMargin is the most that a turn keeps of its time to say that it is over.
	maxMargin = 2 * time.Second
	// maxHistory is the most that is read of a history at once.
	maxHistory = contract.MaxMessage / 2
)

// turn is one attempt to bring a turn to its end.
type turn struct {
	a       *Agent
	base    context.Context // of the delivery
	ctx     context.Context // base, up to the turn's time limit
	cancel  context.CancelFunc
	limit   time.Duration
	context *busv1.TurnContext
	zone    *time.Location

	history *history       // what is recorded, the turn's own rows included
	id      int64          // marks the turn's own rows
	fresh   []*busv1.Entry // not recorded yet: they go into the next commit
	heard   bool           // a user is waiting for an answer

	tools    *toolset
	channels []Channel
	system   string
	systemAt time.Time
	draft    *draft
	partial  string // what the model has said in a step that did not end
}

// begin opens the turn of an input: a new one, or the one that is under way.
func (a *Agent) begin(ctx context.Context, d sdk.Delivery, in contract.AgentInput) (*turn, error) {
	t := &turn{a: a, base: ctx, context: d.Turn, zone: a.location(d.Turn.GetTimezone())}
	var err error
	if t.history, err = a.recall(ctx, d.Turn); err != nil {
		return nil, err
	}
	if d.Turn.GetResumed() {
		t.id = d.Turn.GetTurn()
	} else {
		t.id = -a.turns.Add(1)
		if t.fresh, err = t.hear(ctx, d, in); err != nil {
			return nil, err
		}
	}
	t.heard = t.userWaits()
	if t.tools, err = a.tools.get(ctx, d.Turn.GetToolsEtag()); err != nil {
		return nil, err
	}
	if t.channels, err = a.channels.get(ctx, d.Turn.GetChannelsEtag()); err != nil {
		if errors.Is(err, contract.ErrStale) || ctx.Err() != nil {
			return nil, err
		}
		a.log.Warn("the prompt names no channels: listing them failed", "error", err)
	}
	t.start(d.Deadline)
	return t, nil
}

// start runs the clock of the turn. The kernel ends a turn at the delivery's
// deadline; a little before that the turn ends itself, and says so.
func (t *turn) start(deadline time.Time) {
	now := time.Now()
	end := now.Add(t.a.limits.time)
	if !deadline.IsZero() {
		left := deadline.Sub(now)
		if soft := deadline.Add(-min(maxMargin, left/10)); soft.Before(end) {
			end = soft
		}
	}
	t.limit = end.Sub(now)
	t.ctx, t.cancel = context.WithDeadlineCause(t.base, end, errTime)
	if t.showsDrafts() {
		t.draft = newDraft(t.ctx, t.a.kernel)
	}
}

func (t *turn) close() {
	t.draft.stop()
	t.cancel()
}

// run takes one action after the other until one of them ends the turn.
func (t *turn) run() (sdk.Effects, error) {
	for {
		s := next(t.own(), t.a.limits.steps, t.tools.readOnly)
		effects, err := t.take(s)
		if err == nil && effects == nil {
			err = t.checkpoint()
		}
		switch {
		case err != nil && t.timedOut(err):
			return t.overtime()
		case err != nil:
			return nil, fmt.Errorf("turn of session %s: %w", t.context.GetSession(), err)
		case effects != nil:
			return effects, nil
		}
	}
}

// take takes one action. Effects end the turn.
func (t *turn) take(s step) (sdk.Effects, error) {
	switch s.do {
	case ask:
		return t.ask(s)
	case call:
		return nil, t.call(s.calls)
	case capped:
		return t.end(contract.OutcomeCapped, Ending{Why: WhyCapped, Steps: t.a.limits.steps}), nil
	default:
		return t.output(contract.OutcomeOK, s.last.GetText()), nil
	}
}

// checkpoint stands between two actions: after every round of calls and between
// calls that run in order. Only here may a turn be diverted from what its rows
// ask for.
func (t *turn) checkpoint() error {
	return context.Cause(t.ctx)
}

// timedOut reports whether err means that the turn has used its time, and not
// that the kernel has ended it. The other side of a call sees the same deadline
// a moment earlier or later.
func (t *turn) timedOut(err error) bool {
	if t.base.Err() != nil || errors.Is(err, contract.ErrStale) {
		return false
	}
	end, _ := t.ctx.Deadline()
	return errors.Is(context.Cause(t.ctx), errTime) ||
		errors.Is(err, context.DeadlineExceeded) && time.Until(end) < maxMargin/4
}

// overtime ends the turn after its time. Calls may have ended meanwhile.
func (t *turn) overtime() (sdk.Effects, error) {
	if t.running() {
		if err := t.sync(t.base); err != nil {
			return nil, fmt.Errorf("turn of session %s: end it after its time: %w", t.context.GetSession(), err)
		}
	}
	return t.end(contract.OutcomeTimeout, Ending{Why: WhyTimeout, Limit: t.limit}), nil
}

// running reports whether calls of the last answer have no result yet.
func (t *turn) running() bool {
	return next(t.own(), t.a.limits.steps, t.tools.readOnly).do == call
}

// own is the recorded rows of this turn.
func (t *turn) own() []row {
	rows := t.history.rows
	for len(rows) > 0 && rows[0].turn != t.id {
		rows = rows[1:]
	}
	own := rows[:0:0]
	for _, r := range rows {
		if r.turn == t.id {
			own = append(own, r)
		}
	}
	return own
}

// userWaits reports whether an input of the turn is a user's.
func (t *turn) userWaits() bool {
	for _, e := range t.fresh {
		if e.GetInputKind() == contract.InputUser {
			return true
		}
	}
	for _, r := range t.own() {
		if r.GetKind() == contract.EntryInput && r.GetInputKind() == contract.InputUser {
			return true
		}
	}
	return false
}

// showsDrafts reports whether somebody sees what is being written.
func (t *turn) showsDrafts() bool {
	id := t.context.GetChannel()
	if id == "" {
		return false
	}
	for _, c := range t.channels {
		if c.ID == id {
			return c.drafts
		}
	}
	return true
}

// recall is the history of a session: the one in memory while it is current.
func (a *Agent) recall(ctx context.Context, t *busv1.TurnContext) (*history, error) {
	if h := a.histories.take(t.GetSession()); h.current(t) {
		return h, nil
	}
	h := &history{session: t.GetSession(), seq: t.GetHistorySeq(), epoch: t.GetHistoryEpoch(), group: t.GetGroup()}
	if (t.GetHistorySeq() == 0 || a.forgets) && !t.GetResumed() {
		return h, nil
	}
	size := int64(a.limits.bytes)
	rows, more, err := a.kernel.History(ctx, t.GetSession(), 0, size)
	for err == nil && more && t.GetResumed() && len(rows) > 0 && rows[0].GetTurn() == t.GetTurn() && size < maxHistory {
		size = min(2*size, maxHistory) // the turn that goes on is needed whole
		rows, more, err = a.kernel.History(ctx, t.GetSession(), 0, size)
	}
	if err != nil {
		return nil, fmt.Errorf("read the history of session %s: %w", t.GetSession(), err)
	}
	if more {
		rows = wholeTurns(rows, t.GetTurn())
	}
	if a.forgets {
		rows = slices.DeleteFunc(rows, func(e *busv1.Entry) bool { return e.GetTurn() != t.GetTurn() })
	}
	for _, e := range rows {
		h.add(e, e.GetTurn())
	}
	return h, nil
}

// sync takes over the rows that the kernel has recorded behind those known.
func (t *turn) sync(ctx context.Context) error {
	rows, _, err := t.a.kernel.History(ctx, t.context.GetSession(), t.history.seq, maxHistory)
	if err != nil {
		return fmt.Errorf("read the history of session %s again: %w", t.context.GetSession(), err)
	}
	for _, e := range rows {
		t.history.add(e, t.id)
	}
	return nil
}

// location is a zone by name; the agent's own if there is none of that name.
func (a *Agent) location(name string) *time.Location {
	if name == "" || name == a.zone.String() {
		return a.zone
	}
	if l, ok := a.zones.Load(name); ok {
		return l.(*time.Location)
	}
	l, err := time.LoadLocation(name)
	if err != nil {
		a.log.Warn("unknown time zone, using another one", "zone", name, "instead", a.zone.String(), "error", err)
		l = a.zone
	}
	a.zones.Store(name, l)
	return l
}
