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
	"github.com/switchboard-run/switchboard/contract/busv1"
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
	answers := f.Line.ReplyTo == w.said.ID || w.later[f.Line.ReplyTo] && w.end(ctx) != nil
	if f.Line.Notice || !answers {
		w.out.Others = append(w.out.Others, m)
		return false
	}
	w.out.Reply, w.out.Status = &m, answered
	if end := w.end(ctx); end != nil {
		w.out.Outcome = end.Outcome
	}
	return true
}

// over reports whether the turn of the message has ended without a text.
func (w *wait) over(ctx context.Context) bool {
	end := w.end(ctx)
	if end == nil || end.Text != "" { // the line comes
		return false
	}
	w.out.Status, w.out.Outcome = ended, end.Outcome
	return true
}

// end returns the end of the turn that took the message; nil: it has not ended, or is not known.
func (w *wait) end(ctx context.Context) *contract.AgentOutput {
	if w.said.Event == "" {
		return nil
	}
	end, err := w.readEnd(ctx)
	if err != nil && ctx.Err() == nil {
		w.Log.Warn("cannot read the turn of a message; its waiting client may wait longer", "event", w.said.Event,
			"error", err)
	}
	return end
}

// How many events after a message its input, and the end of its turn, are searched in.
const (
	inputWithin = 50 // they are one commit
	endWithin   = 20_000
)

func (w *wait) readEnd(ctx context.Context) (*contract.AgentOutput, error) {
	e, err := admin.EventByID(ctx, w.Read, w.said.Event)
	if err != nil {
		return nil, err
	}
	next, err := admin.Events(ctx, w.Read, &adminv1.EventsRequest{
		CorrelationId: e.GetCorrelationId(), Topic: contract.TopicAgentInput + "*", After: e.GetSeq(),
		Before: e.GetSeq() + inputWithin, Limit: inputWithin, Ascending: true,
	})
	if err != nil {
		return nil, err
	}
	for _, in := range next {
		var input contract.AgentInput
		if in.GetCausationId() == e.GetId() && json.Unmarshal(in.GetPayload(), &input) == nil {
			return w.endOf(ctx, input.Session, in)
		}
	}
	return nil, nil // it is a command
}

// endOf returns the end of the turn of a session that took an input.
func (w *wait) endOf(ctx context.Context, session string, input *busv1.Event) (*contract.AgentOutput, error) {
	const most = 500
	found, err := admin.Events(ctx, w.Read, &adminv1.EventsRequest{
		Topic: contract.TopicAgentOutput, After: input.GetSeq(), Before: input.GetSeq() + endWithin, Limit: most,
		Ascending: true,
	})
	if err != nil {
		return nil, err
	}
	ends := map[int64]*contract.AgentOutput{}
	var ids []int64
	for _, o := range found {
		var end contract.AgentOutput
		if json.Unmarshal(o.GetPayload(), &end) == nil && end.Session == session {
			ends[end.Turn], ids = &end, append(ids, end.Turn)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	turns, err := w.Read.Turns(ctx, &adminv1.TurnsRequest{Ids: ids})
	for err == nil {
		var t *adminv1.Turn
		if t, err = turns.Recv(); err == nil && slices.Contains(t.GetInputs(), input.GetId()) {
			return ends[t.GetId()], nil
		}
	}
	return nil, notEOF(err)
}

// stream writes what happens until the answer is there.
func (w *wait) stream(ctx context.Context, c huma.Context) {
	s := newSSE(c)
	if s.begin(w.said.Seq) != nil || s.send(w.said.Seq, "message", w.out.Message) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, defaultWait)
	defer cancel()
	err := relay(ctx, w.api, w.visitor, s, w.frames, func(f chat.Frame) error {
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
