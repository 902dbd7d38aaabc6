package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// maxHistory is the most that is read of a history at once.
const maxHistory = contract.MaxMessage / 2

// turn is one attempt to bring a turn to its end, and after it those that it
// has interrupted.
type turn struct {
	a       *Agent
	ctx     context.Context // of the delivery
	context *busv1.TurnContext
	zone    *time.Location

	history *history       // what is recorded, the turn's own rows included
	id      int64          // marks the turn's own rows
	fresh   []*busv1.Entry // not recorded yet: they go into the next commit
	heard   bool           // a user is waiting for an answer
	waiting atomic.Bool    // something may wait behind what the turn is about

	tools    *offer
	channels []Channel
	system   string
	systemAt time.Time
	toldAt   time.Time // when the model was told the time; zero: not in this turn
	draft    *draft
	partial  string // what the model has said in a step that did not end

	model   string  // asked instead of the agent's own; empty: that
	persona *string // instructions instead of the agent's own; nil: those
}

// begin opens the turn of an input: a new one, or the one that is under way.
func (a *Agent) begin(ctx context.Context, d sdk.Delivery, in contract.AgentInput) (*turn, error) {
	t := &turn{a: a, ctx: ctx, context: d.Turn, zone: a.location(d.Turn.GetTimezone())}
	t.model, _ = in.Meta[contract.MetaModel].(string)
	if instead, ok := in.Meta[contract.MetaInstructions].(string); ok {
		t.persona = &instead
	}
	t.waiting.Store(d.Turn.GetWaiting() > 0)
	var err error
	if t.history, err = a.recall(ctx, d.Turn); err != nil {
		return nil, err
	}
	if d.Turn.GetResumed() {
		t.id = d.Turn.GetTurn()
		t.toldAt = lastTold(t.history.rows)
	} else {
		t.id = -a.turns.Add(1)
		if t.fresh, err = t.hear(ctx, d, in); err != nil {
			return nil, err
		}
	}
	tools, err := a.tools.get(ctx, d.Turn.GetToolsEtag())
	if err != nil {
		return nil, err
	}
	t.tools = tools.in(d.Turn.GetExtension())
	if t.channels, err = a.channels.get(ctx, d.Turn.GetChannelsEtag()); err != nil {
		if errors.Is(err, contract.ErrStale) || ctx.Err() != nil {
			return nil, err
		}
		a.log.Warn("list the channels: the model is told of none", "error", err)
	}
	if err := t.enter(); err != nil {
		return nil, err
	}
	if d.Turn.GetResumed() && len(t.fresh) == 0 && len(unfinished(t.own())) > 0 {
		return t, t.checkpoint() // the process may have died there
	}
	return t, nil
}

// enter prepares the turn that runs now, a new one or one that goes on.
func (t *turn) enter() error {
	t.partial = ""
	t.heard = t.userWaits()
	if t.wasInterrupted() {
		t.fresh = append(t.fresh, t.reminder())
	}
	t.draft.stop()
	t.draft = nil
	if t.showsDrafts() {
		t.draft = newDraft(t.ctx, t.a.kernel)
	}
	if err := t.summarize(); err != nil {
		return err
	}
	if err := t.compose(); err != nil {
		return err
	}
	t.tell(t.fresh)
	return t.consult()
}

func (t *turn) close() { t.draft.stop() }

// run takes one action after the other until the turn has ended, and with it
// every turn below.
func (t *turn) run() (sdk.Effects, error) {
	for {
		effects, err := t.advance()
		over := t.over(err)
		if over {
			effects, err = t.overtime()
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("turn of session %s: %w", t.context.GetSession(), err)
		case effects == nil:
			continue
		case t.context.GetBelow() == 0:
			t.history.predict(t.fresh, t.id)
			t.a.histories.put(t.history)
			return effects, nil
		}
		if err := t.goBack(effects); err != nil {
			return nil, fmt.Errorf("turn of session %s: %w", t.context.GetSession(), err)
		}
		if over || t.ctx.Err() != nil { // the turn below has time of its own
			return nil, sdk.Retry(0, errors.New("the turn that had interrupted this one took too long"))
		}
	}
}

// advance takes the next action. Effects end the turn.
func (t *turn) advance() (sdk.Effects, error) {
	if t.ctx.Err() != nil {
		return nil, context.Cause(t.ctx)
	}
	effects, err := t.take(next(t.own(), t.a.limits.steps, t.tools))
	if err == nil && effects == nil {
		err = t.checkpoint()
	}
	return effects, err
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
// calls that run in order. Only here may newer messages interrupt the turn.
func (t *turn) checkpoint() error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	if !t.waiting.Load() || t.context.GetInterruptions() >= contract.MaxInterruptions {
		return nil
	}
	return t.steer()
}

// over reports whether err means that the kernel has ended the turn's time. It
// looks the same when the turn was taken away: then its end is refused.
func (t *turn) over(err error) bool {
	return err != nil && errors.Is(context.Cause(t.ctx), sdk.ErrEnded) && !errors.Is(err, contract.ErrStale)
}

// overtime ends the turn after its time. Calls may have ended meanwhile.
func (t *turn) overtime() (sdk.Effects, error) {
	if len(unfinished(t.own())) > 0 {
		if err := t.sync(context.WithoutCancel(t.ctx)); err != nil {
			return nil, fmt.Errorf("end it after its time: %w", err)
		}
	}
	return t.end(contract.OutcomeTimeout, Ending{Why: WhyTimeout, Limit: t.a.limits.time}), nil
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
	h := a.histories.take(t.GetSession())
	switch {
	case h.current(t):
		return h, nil
	case h.behind(t):
		if _, more, err := a.further(ctx, h); err != nil || !more {
			return h, err
		}
	}
	h = &history{session: t.GetSession(), seq: t.GetHistorySeq(), epoch: t.GetHistoryEpoch(), group: t.GetGroup()}
	if (t.GetHistorySeq() == 0 || a.forgets) && !t.GetResumed() {
		return h, nil
	}
	size := int64(a.limits.bytes)
	rows, more, err := a.kernel.History(ctx, t.GetSession(), 0, size)
	for err == nil && more && !a.enough(rows, t) && size < maxHistory {
		size = min(2*size, maxHistory)
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

// enough reports whether the newest rows are all that the next request can use:
// a turn that goes on, whole, and what stands behind the newest summary, or as
// much as fits. A stored result can be far longer than what is shown of it.
func (a *Agent) enough(rows []*busv1.Entry, t *busv1.TurnContext) bool {
	if len(rows) == 0 || t.GetResumed() && !whole(rows, t.GetTurn()) {
		return false
	}
	size, covers := 0, int64(0)
	for _, e := range rows {
		size += min(newRow(e, 0).bytes, contract.MaxToolResult)
		covers = max(covers, e.GetCovers())
	}
	return a.forgets || size >= a.limits.bytes || covers > 0 && rows[0].GetSeq() <= covers+1
}

// sync takes over the rows that the kernel has recorded behind those known.
func (t *turn) sync(ctx context.Context) error {
	rows, _, err := t.a.further(ctx, t.history)
	for _, e := range rows {
		if t.id < 0 { // the first of them tells the number that the kernel gave this turn
			t.renumber(e.GetTurn())
		}
	}
	return err
}

// further takes over the rows that the kernel has behind those known. With more of
// them than are read at once, the oldest are missing.
func (a *Agent) further(ctx context.Context, h *history) (rows []*busv1.Entry, more bool, err error) {
	rows, more, err = a.kernel.History(ctx, h.session, h.seq, maxHistory)
	if err != nil {
		return nil, false, fmt.Errorf("read what is new in the history of session %s: %w", h.session, err)
	}
	for _, e := range rows {
		h.add(e, e.GetTurn())
	}
	return rows, more, nil
}

// renumber gives the turn the number that the kernel knows it by.
func (t *turn) renumber(id int64) {
	if id == 0 || id == t.id {
		return
	}
	for i := range t.history.rows {
		if r := &t.history.rows[i]; r.turn == t.id {
			r.turn = id
		}
	}
	t.id = id
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
