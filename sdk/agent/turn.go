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

// maxHistory bounds one read of a history, in bytes.
const maxHistory = contract.MaxMessage / 2

// turn is one attempt to run a turn to its end, and then the turns that it
// interrupted.
type turn struct {
	a       *Agent
	ctx     context.Context // of the delivery
	context *busv1.TurnContext
	zone    *time.Location

	history  *history       // the recorded rows, including the turn's own
	id       int64          // of the turn's own rows
	fresh    []*busv1.Entry // rows that the next commit will record
	language string         // of the person whose input it answers
	fromUser bool           // it has an input of a user
	waiting  atomic.Bool    // newer inputs may be waiting

	tools    *offer
	channels []Channel
	system   string
	systemAt time.Time
	draft    *draft
	partial  string // the beginning of an unfinished answer
	pictures pictures

	spoken  bool      // its inputs have recordings
	written []hearing // that are in rows which are not recorded yet

	preambleAt time.Time // of the last preamble; zero: none in this turn

	model   string  // overrides the agent's model; empty: no override
	persona *string // overrides the agent's instructions; nil: no override
}

// begin begins or resumes the turn of an input.
func (a *Agent) begin(ctx context.Context, d sdk.Delivery, in contract.AgentInput) (*turn, error) {
	t := &turn{a: a, ctx: ctx, context: d.Turn, language: in.Language, zone: a.location(d.Turn.GetTimezone())}
	t.model, _ = in.Meta[contract.MetaModel].(string)
	if instead, ok := in.Meta[contract.MetaInstructions].(string); ok {
		t.persona = &instead
	}
	t.waiting.Store(d.Turn.GetWaiting() > 0)
	var err error
	if t.history, err = a.loadHistory(ctx, d.Turn); err != nil {
		return nil, err
	}
	if d.Turn.GetResumed() {
		t.id = d.Turn.GetTurn()
		t.preambleAt = lastPreamble(t.history.rows)
	} else {
		t.id = -a.turns.Add(1)
		if t.fresh, err = t.inputRows(ctx, d, in); err != nil {
			return nil, err
		}
	}
	tools, err := a.tools.get(ctx, d.Turn.GetToolsEtag())
	if err != nil {
		return nil, err
	}
	t.tools = tools.offer(d.Turn.GetExtension())
	if t.channels, err = a.channels.get(ctx, d.Turn.GetChannelsEtag()); err != nil {
		if errors.Is(err, contract.ErrStale) || ctx.Err() != nil {
			return nil, err
		}
		a.log.Warn("list the channels: the model gets none", "error", err)
	}
	if err := t.prepare(); err != nil {
		return nil, err
	}
	if d.Turn.GetResumed() && len(t.fresh) == 0 && len(unfinished(t.own())) > 0 {
		return t, t.checkpoint() // the process may have died before it
	}
	return t, nil
}

// prepare prepares a new or continued turn for its next step.
func (t *turn) prepare() error {
	t.partial = ""
	t.fromUser = t.hasUserInput()
	if t.wasInterrupted() {
		t.fresh = append(t.fresh, t.reminder())
	}
	t.draft.stop()
	t.draft = nil
	if t.showsDrafts() {
		t.draft = newDraft(t.ctx, t.a.kernel)
	}
	if err := t.hear(); err != nil {
		return err
	}
	if err := t.summarize(); err != nil {
		return err
	}
	if err := t.compose(); err != nil {
		return err
	}
	t.addPreamble(t.fresh)
	if err := t.recordInputs(); err != nil {
		return err
	}
	if err := t.consult(); err != nil {
		return err
	}
	return t.readDocuments()
}

func (t *turn) close() { t.draft.stop() }

// run takes steps until the turn and all turns that it interrupted have ended.
func (t *turn) run() (sdk.Effects, error) {
	for {
		effects, err := t.advance()
		timedOut := t.timedOut(err)
		if timedOut {
			effects, err = t.endTimedOut()
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
		if err := t.resumeBelow(effects); err != nil {
			return nil, fmt.Errorf("turn of session %s: %w", t.context.GetSession(), err)
		}
		if timedOut || t.ctx.Err() != nil { // the resumed turn has its own timeout
			return nil, sdk.Retry(0, errors.New("the turn that interrupted this one took too long"))
		}
	}
}

// advance takes the next step. Returned effects end the turn.
func (t *turn) advance() (sdk.Effects, error) {
	if t.ctx.Err() != nil {
		return nil, context.Cause(t.ctx)
	}
	effects, err := t.perform(next(t.own(), t.a.limits.steps, t.tools))
	if err == nil && effects == nil {
		err = t.checkpoint()
	}
	return effects, err
}

// perform takes one step. Returned effects end the turn.
func (t *turn) perform(s step) (sdk.Effects, error) {
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

// checkpoint runs between two steps: after concurrent calls and between calls that run
// in order. Newer messages can interrupt the turn only here.
func (t *turn) checkpoint() error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	if !t.waiting.Load() || t.context.GetInterruptions() >= contract.MaxInterruptions {
		return nil
	}
	return t.steer()
}

// timedOut reports whether err means that the turn has timed out. A revoked turn looks
// the same; then the kernel refuses its end.
func (t *turn) timedOut(err error) bool {
	return err != nil && errors.Is(context.Cause(t.ctx), sdk.ErrEnded) && !errors.Is(err, contract.ErrStale)
}

// endTimedOut ends a turn that has timed out. Its calls may have ended meanwhile.
func (t *turn) endTimedOut() (sdk.Effects, error) {
	if len(unfinished(t.own())) > 0 {
		if err := t.sync(context.WithoutCancel(t.ctx)); err != nil {
			return nil, fmt.Errorf("end it after its timeout: %w", err)
		}
	}
	return t.end(contract.OutcomeTimeout, Ending{Why: WhyTimeout, Limit: t.a.limits.time}), nil
}

// own returns the recorded rows of this turn.
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

// hasUserInput reports whether an input of the turn is a user's.
func (t *turn) hasUserInput() bool {
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

// showsDrafts reports whether the turn's channel shows drafts.
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

// loadHistory returns the history of a session, from the cache if it is current.
func (a *Agent) loadHistory(ctx context.Context, t *busv1.TurnContext) (*history, error) {
	h := a.histories.take(t.GetSession())
	switch {
	case h.current(t):
		return h, nil
	case h.extendable(t):
		if _, more, err := a.loadNewer(ctx, h); err != nil || !more {
			return h, err
		}
	}
	h = &history{session: t.GetSession(), seq: t.GetHistorySeq(), epoch: t.GetHistoryEpoch(), group: t.GetGroup()}
	if (t.GetHistorySeq() == 0 || a.noHistory) && !t.GetResumed() {
		return h, nil
	}
	size := int64(a.room(a.model))
	rows, more, err := a.kernel.History(ctx, t.GetSession(), 0, size)
	for err == nil && more && !a.enough(rows, t) && size < maxHistory {
		size = min(2*size, maxHistory)
		rows, more, err = a.kernel.History(ctx, t.GetSession(), 0, size)
	}
	if err != nil {
		return nil, fmt.Errorf("read the history of session %s: %w", t.GetSession(), err)
	}
	if more {
		rows = dropPartialTurn(rows, t.GetTurn())
	}
	if a.noHistory {
		rows = slices.DeleteFunc(rows, func(e *busv1.Entry) bool { return e.GetTurn() != t.GetTurn() })
	}
	for _, e := range rows {
		h.add(e, e.GetTurn())
	}
	return h, nil
}

// enough reports whether the newest rows suffice for the next request: the whole
// resumed turn, and the rows after the newest summary or as many as fit. Stored
// results can be much longer than in a request.
func (a *Agent) enough(rows []*busv1.Entry, t *busv1.TurnContext) bool {
	if len(rows) == 0 || t.GetResumed() && !containsTurn(rows, t.GetTurn()) {
		return false
	}
	size, covers := 0, int64(0)
	for _, e := range rows {
		size += min(newRow(e, 0).bytes, contract.MaxToolResult)
		covers = max(covers, e.GetCovers())
	}
	return a.noHistory || size >= a.room(a.model) || covers > 0 && rows[0].GetSeq() <= covers+1
}

// sync loads the rows that the kernel has recorded after the known ones.
func (t *turn) sync(ctx context.Context) error {
	rows, _, err := t.a.loadNewer(ctx, t.history)
	for _, e := range rows {
		if t.id < 0 { // the first new row has the kernel's number of this turn
			t.renumber(e.GetTurn())
		}
	}
	return err
}

// loadNewer loads the kernel's rows after the known ones. If more is true, there were
// too many for one read, and the oldest are missing.
func (a *Agent) loadNewer(ctx context.Context, h *history) (rows []*busv1.Entry, more bool, err error) {
	rows, more, err = a.kernel.History(ctx, h.session, h.seq, maxHistory)
	if err != nil {
		return nil, false, fmt.Errorf("read new rows of the history of session %s: %w", h.session, err)
	}
	for _, e := range rows {
		h.add(e, e.GetTurn())
	}
	return rows, more, nil
}

// renumber gives the turn the kernel's number.
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

// location returns a time zone by name; the agent's own if the name is unknown.
func (a *Agent) location(name string) *time.Location {
	if name == "" || name == a.zone.String() {
		return a.zone
	}
	if l, ok := a.zones.Load(name); ok {
		return l.(*time.Location)
	}
	l, err := time.LoadLocation(name)
	if err != nil {
		a.log.Warn("load time zone: using another one", "zone", name, "used", a.zone.String(), "error", err)
		l = a.zone
	}
	a.zones.Store(name, l)
	return l
}
