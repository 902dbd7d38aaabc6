package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/naming"
)

type builder struct {
	r     journal.Reader
	subs  map[int64]journal.Subscription
	nodes map[string]*Node // events
	turns map[int64]*Node
	calls map[string]*Node
	// What a call has published was accepted at its end, because of the input that
	// its turn is about.
	committed map[commit]*Node
	places    map[string]string // sessions in words
	last      int64             // Unix microseconds of the newest thing known
}

// commit is what the events of a call have in common.
type commit struct {
	cause string
	at    int64
}

// build makes the tree of events that are in the order of their acceptance.
func (b *builder) build(events []*busv1.Event) (*Node, error) {
	known, err := b.r.Subscriptions()
	if err != nil {
		return nil, err
	}
	b.subs = map[int64]journal.Subscription{}
	for _, s := range known {
		b.subs[s.ID] = s
	}
	for _, e := range events {
		n, err := b.event(e)
		if err != nil {
			return nil, err
		}
		b.nodes[e.GetId()] = n
	}
	// Turns are needed before what they published can be put below them.
	for _, e := range events {
		if strings.HasPrefix(e.GetTopic(), contract.TopicAgentInput) {
			if err := b.turnOf(e, events); err != nil {
				return nil, err
			}
		}
	}
	root := b.nodes[events[0].GetId()]
	for _, e := range events[1:] {
		above := b.above(e)
		if above == nil {
			above = root
		}
		above.Children = append(above.Children, b.nodes[e.GetId()])
	}
	sortByTime(root)
	return root, nil
}

func sortByTime(n *Node) {
	slices.SortStableFunc(n.Children, func(x, y *Node) int { return x.At.Compare(y.At) })
	for _, c := range n.Children {
		sortByTime(c)
	}
}

// above is the step that an event follows from; nil: unknown.
func (b *builder) above(e *busv1.Event) *Node {
	switch {
	case e.GetTopic() == contract.TopicAgentOutput:
		var out contract.AgentOutput
		if json.Unmarshal(e.GetPayload(), &out) == nil && b.turns[out.Turn] != nil {
			return b.turns[out.Turn]
		}
	case strings.HasPrefix(e.GetTopic(), contract.TopicChannelSend):
		var send contract.ChannelSend
		if json.Unmarshal(e.GetPayload(), &send) == nil && send.Call != "" && b.calls[send.Call] != nil {
			return b.calls[send.Call]
		}
	}
	if call := b.committed[commit{e.GetCausationId(), e.GetCreatedAtUs()}]; call != nil && e.GetTopic() != contract.TopicModelUsage {
		return call
	}
	return b.nodes[e.GetCausationId()]
}

// event is the node of an event, with what became of its deliveries.
func (b *builder) event(e *busv1.Event) (*Node, error) {
	n := &Node{Kind: KindEvent, ID: e.GetId(), Name: e.GetTopic(), Source: e.GetSource(), At: time.UnixMicro(e.GetCreatedAtUs())}
	b.seen(e.GetCreatedAtUs())
	describe(n, e)
	if err := b.place(n); err != nil {
		return nil, err
	}
	ds, err := b.r.Deliveries(journal.DeliveryFilter{Seq: e.GetSeq()})
	if err != nil {
		return nil, err
	}
	for _, d := range ds {
		s := b.subs[d.Subscription]
		at := n
		// What has one recipient by its nature is one step with its delivery.
		if s.Pattern != e.GetTopic() || !strings.HasPrefix(s.Pattern, contract.TopicAgentInput) && !strings.HasPrefix(s.Pattern, contract.TopicChannelSend) {
			at = &Node{Kind: KindDelivery, Name: s.Extension, At: n.At}
			if s.Extension == contract.KernelSource {
				at.Name = "router"
			}
			n.Children = append(n.Children, at)
		}
		b.delivery(at, e, d)
	}
	return n, nil
}

func (b *builder) delivery(n *Node, e *busv1.Event, d journal.Delivery) {
	n.State, n.Attempts, n.ProviderID = d.State.String(), d.Attempts, d.ProviderID
	if d.State == journal.Done && d.ProviderID != "" {
		n.State = "delivered"
	}
	n.Reason = shorten(d.Reason)
	started := d.StartedAt
	if started == 0 {
		started = d.SettledAt // settled without having been handed out
	}
	n.WaitMillis = span(e.GetCreatedAtUs(), started)
	if d.StartedAt != 0 {
		n.TookMillis = span(d.StartedAt, d.SettledAt)
	}
	b.seen(d.SettledAt)
}

func (b *builder) seen(at int64) { b.last = max(b.last, at) }

// place says in words where a step takes place.
func (b *builder) place(n *Node) error {
	if n.Session == "" {
		return nil
	}
	if _, known := b.places[n.Session]; !known {
		s, err := b.r.Session(journal.ParseSessionID(n.Session))
		if err == nil && s != nil {
			b.places[n.Session], err = naming.Session(b.r, s, naming.Owner)
		}
		if err != nil {
			return err
		}
	}
	n.Place = b.places[n.Session]
	return nil
}

// describe tells what an event of the kernel's topics says.
func describe(n *Node, e *busv1.Event) {
	var p struct {
		Text         string
		Prompt       string
		Conversation string
		Session      string
		Outcome      string
		Reason       string
		Kind         string
		Sender       string
		Thread       string
	}
	if json.Unmarshal(e.GetPayload(), &p) != nil {
		return
	}
	if strings.HasPrefix(e.GetTopic(), contract.TopicAgentInput) {
		n.Input, n.Sender, n.Thread, p.Text = p.Kind, p.Sender, p.Thread, Gist(p.Text)
	}
	n.Text, n.Session, n.State, n.Reason = shorten(cmp.Or(p.Text, p.Prompt)), p.Session, p.Outcome, shorten(p.Reason)
	if strings.HasPrefix(e.GetTopic(), contract.TopicChannelSend) {
		n.Conversation = cmp.Or(p.Conversation, "the default recipient")
	}
}

// turnOf puts the turn that an input began below it.
func (b *builder) turnOf(e *busv1.Event, events []*busv1.Event) error {
	session := journal.ParseSessionID(e.GetKey())
	s, err := b.r.Session(session)
	if err != nil || s == nil {
		return err // deleted: its rows are gone
	}
	candidates := slices.Clone(s.Stack)
	for _, o := range events {
		var out contract.AgentOutput
		if o.GetTopic() == contract.TopicAgentOutput && json.Unmarshal(o.GetPayload(), &out) == nil && out.Session == e.GetKey() {
			candidates = append(candidates, out.Turn)
		}
	}
	for _, id := range candidates {
		t, err := b.r.Turn(id)
		if err != nil {
			return err
		}
		if t == nil || !slices.Contains(t.Inputs, e.GetSeq()) || b.turns[id] != nil {
			continue
		}
		return b.turn(e, s, t)
	}
	return nil
}

func (b *builder) turn(e *busv1.Event, s *journal.Session, t *journal.Turn) error {
	input := b.nodes[e.GetId()]
	began := e.GetCreatedAtUs()
	if input.WaitMillis != nil {
		began += int64(*input.WaitMillis * 1000)
	}
	rows, _, err := b.r.History(s.ID, 0, math.MaxInt64)
	if err != nil {
		return err
	}
	// What is known of a start is the last one: a turn that was taken up again began
	// before that.
	if slices.ContainsFunc(rows, func(row *busv1.Entry) bool {
		return row.GetTurn() == t.ID && row.GetKind() != contract.EntryInput && row.GetCreatedAtUs() < began
	}) {
		began, input.WaitMillis = e.GetCreatedAtUs(), nil
	}
	before := began
	n := &Node{
		Kind: KindTurn, ID: fmt.Sprint(t.ID), Name: s.Agent, Session: e.GetKey(), State: cmp.Or(t.Outcome, "running"),
		At: time.UnixMicro(began), TookMillis: span(began, t.EndedAt),
	}
	for _, seq := range t.Inputs {
		n.inputs = append(n.inputs, journal.EventID(seq))
	}
	if err := b.place(n); err != nil {
		return err
	}
	b.turns[t.ID] = n
	input.Children = append(input.Children, n)
	for _, row := range rows {
		if row.GetTurn() != t.ID {
			continue
		}
		if err := b.row(n, row, before); err != nil {
			return err
		}
		if row.GetKind() != contract.EntryInput {
			before = row.GetCreatedAtUs()
		}
		b.seen(row.GetCreatedAtUs())
	}
	return nil
}

// row shows a step of a turn that began when the one before it was over.
func (b *builder) row(turn *Node, row *busv1.Entry, before int64) error {
	switch row.GetKind() {
	case contract.EntryAnswer:
		n := &Node{
			Kind: KindModel, Name: cmp.Or(row.GetModel(), "model"), Text: shorten(row.GetText()), State: "done", At: time.UnixMicro(before),
			TookMillis: span(before, row.GetCreatedAtUs()),
		}
		turn.Children = append(turn.Children, n)
		over := row.GetCreatedAtUs()
		for _, c := range row.GetCalls() {
			n.Calls = append(n.Calls, c.GetName())
			stored, err := b.r.Call(journal.ParseCallID(c.GetCallId()))
			if err != nil {
				return err
			}
			if stored == nil {
				continue
			}
			// Calls of one answer mostly run one after the other.
			began := stored.StartedAt
			if over < stored.EndedAt || stored.EndedAt == 0 {
				began = max(began, over)
			}
			call := &Node{
				Kind: KindTool, ID: c.GetCallId(), Name: c.GetName(), Text: shorten(string(c.GetArguments())), State: stored.State.String(),
				At: time.UnixMicro(began), TookMillis: span(began, stored.EndedAt),
			}
			if stored.IsError {
				call.State, call.Reason = "failed", shorten(stored.Result)
			} else {
				call.Result = shorten(Gist(stored.Result))
			}
			for _, input := range turn.inputs {
				b.committed[commit{input, stored.EndedAt}] = call
			}
			over = max(over, stored.EndedAt)
			b.calls[c.GetCallId()] = call
			turn.Children = append(turn.Children, call)
		}
	case contract.EntryNote, contract.EntryContext, contract.EntrySummary:
		turn.Children = append(turn.Children, &Node{
			Kind: KindNote, Name: row.GetKind(), Text: shorten(row.GetText()), At: time.UnixMicro(row.GetCreatedAtUs()),
		})
	}
	return nil
}
