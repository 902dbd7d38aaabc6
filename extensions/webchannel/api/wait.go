package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// States of an exchange.
const (
	answered = "answered"
	ended    = "ended"
	waiting  = "waiting"
)

// lookTime bounds looking for an answer that may be there already.
const lookTime = 300 * time.Millisecond

// wait waits for the answer to a message. That is the line which answers it, or which answers a
// later message that its turn took as well; or none, when its turn ended without a text.
type wait struct {
	*api
	visitor door.Visitor
	said    chat.Line
	out     Exchange
	later   map[string]bool // ids of messages that came after it
}

// forAnswer waits for a time.
func (w *wait) forAnswer(ctx context.Context, most time.Duration) {
	ctx, cancel := w.until(ctx)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, most)
	defer stop()
	for f, err := range w.Chat.Follow(ctx, w.visitor, w.said.Conversation, w.said.Seq) {
		if err != nil || w.take(ctx, f) {
			return
		}
	}
}

// take notes what happens in the conversation, and reports whether it ends the exchange.
func (w *wait) take(ctx context.Context, f chat.Frame) bool {
	switch {
	case f.Draft != nil:
		return f.Draft.Done && w.over(ctx)
	case f.Line.Seq <= w.said.Seq:
		return false
	case f.Line.Mine:
		if w.later == nil {
			w.later = map[string]bool{}
		}
		w.later[f.Line.ID] = true
		return false
	}
	m := messageOf(w.visitor, *f.Line)
	answers := f.Line.ReplyTo == w.said.ID || w.later[f.Line.ReplyTo] && w.taken(ctx)
	if f.Line.Notice || !answers {
		w.out.Others = append(w.out.Others, m)
		return false
	}
	w.out.Reply, w.out.Status = &m, answered
	if turn := w.turn(ctx); turn != nil {
		w.out.Outcome = turn.GetOutcome()
	}
	return true
}

// over reports whether the turn of the message has ended, without a text.
func (w *wait) over(ctx context.Context) bool {
	turn := w.turn(ctx)
	if turn == nil || turn.GetOutcome() == "" {
		return false
	}
	if said, err := w.textOf(ctx, turn); err != nil || said != "" {
		return false // the line comes
	}
	w.out.Status, w.out.Outcome = ended, turn.GetOutcome()
	return true
}

// taken reports whether the turn that took the message has ended.
func (w *wait) taken(ctx context.Context) bool {
	turn := w.turn(ctx)
	return turn != nil && turn.GetOutcome() != ""
}

// turn returns the turn that took the message; nil: none has yet, or it is not known.
func (w *wait) turn(ctx context.Context) *adminv1.Turn {
	if w.said.Event == "" {
		return nil
	}
	turn, err := w.readTurn(ctx)
	if err != nil && ctx.Err() == nil {
		w.Log.Warn("cannot read the turn of a message; its waiting client may wait longer", "event", w.said.Event, "error", err)
	}
	return turn
}

func (w *wait) readTurn(ctx context.Context) (*adminv1.Turn, error) {
	e, err := admin.EventByID(ctx, w.Read, w.said.Event)
	if err != nil {
		return nil, err
	}
	// The message and its input are one commit, the turns are those of the input's session.
	const near = 50
	next, err := admin.Events(ctx, w.Read, &adminv1.EventsRequest{
		CorrelationId: e.GetCorrelationId(), Topic: contract.TopicAgentInput + "*", After: e.GetSeq(), Limit: near,
		Before: e.GetSeq() + near, Ascending: true,
	})
	if err != nil {
		return nil, err
	}
	for _, in := range next {
		var input contract.AgentInput
		if in.GetCausationId() != e.GetId() || json.Unmarshal(in.GetPayload(), &input) != nil {
			continue
		}
		return w.turnOf(ctx, input.Session, in.GetId())
	}
	return nil, nil
}

// turnOf returns the turn of a session that has an input.
func (w *wait) turnOf(ctx context.Context, session, input string) (*adminv1.Turn, error) {
	const newest = 200 // rows: its turn is among the last ones
	rows, err := admin.History(ctx, w.Read, &adminv1.HistoryRequest{Session: session, Limit: newest})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(rows, func(r admin.Entry) bool { return r.GetInput() == input })
	var ids []int64
	if i >= 0 {
		ids = []int64{rows[i].GetTurn()}
	} else {
		for _, r := range rows {
			if !slices.Contains(ids, r.GetTurn()) {
				ids = append(ids, r.GetTurn())
			}
		}
	}
	turns, err := w.Read.Turns(ctx, &adminv1.TurnsRequest{Ids: ids})
	for err == nil {
		var t *adminv1.Turn
		if t, err = turns.Recv(); err == nil && slices.Contains(t.GetInputs(), input) {
			return t, nil
		}
	}
	return nil, notEOF(err)
}

// textOf returns the text with which a turn ended.
func (w *wait) textOf(ctx context.Context, turn *adminv1.Turn) (string, error) {
	e, err := admin.EventByID(ctx, w.Read, w.said.Event)
	if err != nil {
		return "", err
	}
	const most = 1000
	outputs, err := admin.Events(ctx, w.Read, &adminv1.EventsRequest{
		Topic: contract.TopicAgentOutput, After: e.GetSeq(), Before: e.GetSeq() + outputsWithin, Limit: most, Ascending: true,
	})
	for _, o := range outputs {
		var said contract.AgentOutput
		if json.Unmarshal(o.GetPayload(), &said) == nil && said.Turn == turn.GetId() {
			return said.Text, nil
		}
	}
	if err == nil {
		err = errors.New("the output of the turn is not known")
	}
	return "", err
}

// outputsWithin is how many events after a message the end of its turn is searched in.
const outputsWithin = 20_000

// stream writes what happens until the answer is there.
func (w *wait) stream(ctx context.Context, c huma.Context) {
	s := newSSE(c)
	if s.begin(w.said.Seq) != nil || s.send(w.said.Seq, "message", w.out.Message) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, defaultWait)
	defer cancel()
	err := relay(ctx, w.api, s, w.frames, func(f chat.Frame) error {
		over := w.take(ctx, f)
		if err := w.show(s, f); err != nil {
			return err
		}
		if over {
			return errDone
		}
		return nil
	})
	if errors.Is(err, errDone) || ctx.Err() != nil {
		_ = s.send(0, "done", w.out) // the client may be gone
	}
}

// frames yields what happens in the conversation after the message.
func (w *wait) frames(ctx context.Context, yield func(chat.Frame) bool) error {
	for f, err := range w.Chat.Follow(ctx, w.visitor, w.said.Conversation, w.said.Seq) {
		if err != nil {
			return err
		}
		if !yield(f) {
			return nil
		}
	}
	return nil
}

func (w *wait) show(s *sse, f chat.Frame) error {
	if f.Draft != nil {
		return s.send(0, "draft", draftOf(*f.Draft))
	}
	name, m := "other", messageOf(w.visitor, *f.Line)
	if w.out.Reply != nil && w.out.Reply.Seq == m.Seq {
		name = "reply"
	}
	return s.send(m.Seq, name, m)
}

func draftOf(d chat.Draft) Draft {
	return Draft{ID: d.ID, ReplyTo: d.ReplyTo, Text: d.Text, Done: d.Done}
}
