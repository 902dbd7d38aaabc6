package admin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

type builder struct {
	*rows
	nodes map[string]*Node // events
	made  map[int64]*Node  // turns
	tools map[string]*Node // calls
	// committed has the call of each commit: the events that a call published were
	// accepted when it ended, caused by an input of its turn.
	committed map[commit]*Node
	last      int64 // Unix microseconds of the newest step
}

func newBuilder(r *rows) *builder {
	return &builder{
		rows: r, nodes: map[string]*Node{}, made: map[int64]*Node{}, tools: map[string]*Node{},
		committed: map[commit]*Node{},
	}
}

// Names that traces give.
const (
	routerName       = "router"
	defaultRecipient = "the default recipient"
)

// commit identifies the events that one call published.
type commit struct {
	cause string
	at    int64
}

// build makes the tree.
func (b *builder) build() *Node {
	for _, e := range b.events {
		b.nodes[e.GetId()] = b.event(e)
		b.call(e)
	}
	// Turns come first: the events that they published go below them.
	for _, e := range b.events {
		if strings.HasPrefix(e.GetTopic(), contract.TopicAgentInput) {
			b.turnOf(e)
		}
	}
	root := b.nodes[b.events[0].GetId()]
	for _, e := range b.events[1:] {
		above := b.above(e)
		if above == nil {
			above = root
		}
		above.Children = append(above.Children, b.nodes[e.GetId()])
	}
	sortByTime(root)
	return root
}

// call makes the event of a call by an extension a step with its result.
func (b *builder) call(e Event) {
	n := b.nodes[e.GetId()]
	switch {
	case strings.HasPrefix(e.GetTopic(), contract.TopicToolCall):
		var c contract.ToolCall
		if json.Unmarshal(e.GetPayload(), &c) == nil {
			b.tools[c.Call] = n
			n.Kind, n.Name, n.State, n.Text = KindTool, c.Tool, "running", shorten(string(c.Arguments))
		}
	case strings.HasPrefix(e.GetTopic(), contract.TopicToolResult):
		var r contract.ToolResult
		call := b.nodes[e.GetCausationId()]
		if json.Unmarshal(e.GetPayload(), &r) != nil || call == nil {
			return
		}
		if call.TookMillis = span(call.At.UnixMicro(), e.GetCreatedAtUs()); r.Error {
			call.State, call.Reason = "failed", shorten(r.Content)
		} else {
			call.State, call.Result = "done", shorten(Gist(r.Content))
		}
	}
}

func sortByTime(n *Node) {
	slices.SortStableFunc(n.Children, func(x, y *Node) int { return x.At.Compare(y.At) })
	for _, c := range n.Children {
		sortByTime(c)
	}
}

// above returns the step that led to an event; nil: unknown.
func (b *builder) above(e Event) *Node {
	switch {
	case e.GetTopic() == contract.TopicAgentOutput:
		var out contract.AgentOutput
		if json.Unmarshal(e.GetPayload(), &out) == nil && b.made[out.Turn] != nil {
			return b.made[out.Turn]
		}
	case strings.HasPrefix(e.GetTopic(), contract.TopicChannelSend):
		var send contract.ChannelSend
		if json.Unmarshal(e.GetPayload(), &send) == nil && send.Call != "" && b.tools[send.Call] != nil {
			return b.tools[send.Call]
		}
	}
	call := b.committed[commit{e.GetCausationId(), e.GetCreatedAtUs()}]
	if call != nil && e.GetTopic() != contract.TopicModelUsage {
		return call
	}
	return b.nodes[e.GetCausationId()]
}

// event returns the node of an event, with its deliveries.
func (b *builder) event(e Event) *Node {
	n := &Node{
		Kind: KindEvent, ID: e.GetId(), Name: e.GetTopic(), Source: e.GetSource(), At: time.UnixMicro(e.GetCreatedAtUs()),
	}
	b.seen(e.GetCreatedAtUs())
	describe(n, e)
	n.Place = b.sessions[n.Session].Name
	for _, d := range e.Deliveries {
		at := n
		// An event with one recipient by its nature is one step with its delivery.
		own := strings.HasPrefix(d.GetTopic(), contract.TopicAgentInput) ||
			strings.HasPrefix(d.GetTopic(), contract.TopicChannelSend)
		if d.GetTopic() != e.GetTopic() || !own {
			at = &Node{Kind: KindDelivery, Name: d.GetExtension(), At: n.At}
			if d.GetExtension() == contract.KernelSource {
				at.Name = routerName
			}
			n.Children = append(n.Children, at)
		}
		b.delivery(at, e, d)
	}
	return n
}

func (b *builder) delivery(n *Node, e Event, d *adminv1.Delivery) {
	n.State, n.Attempts, n.ProviderID = d.GetState(), int(d.GetAttempts()), d.GetProviderId()
	if d.GetState() == "done" && d.GetProviderId() != "" {
		n.State = "delivered"
	}
	n.Reason = shorten(d.GetReason())
	// A delivery without a start was settled without an attempt.
	n.WaitMillis = span(e.GetCreatedAtUs(), cmp.Or(d.GetStartedAtUs(), d.GetSettledAtUs()))
	if d.GetStartedAtUs() != 0 {
		n.TookMillis = span(d.GetStartedAtUs(), d.GetSettledAtUs())
	}
	b.seen(d.GetSettledAtUs())
}

func (b *builder) seen(at int64) { b.last = max(b.last, at) }

// describe fills in what the payload of an event of the kernel's topics says.
func describe(n *Node, e Event) {
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
		n.Conversation = cmp.Or(p.Conversation, defaultRecipient)
	}
}

// turnOf puts the turn that an input began below it.
func (b *builder) turnOf(e Event) {
	s := b.sessions[e.GetKey()]
	if s.Session == nil {
		return // deleted: its rows are gone
	}
	for _, t := range b.turns[e.GetKey()] {
		if slices.Contains(t.GetInputs(), e.GetId()) && b.made[t.GetId()] == nil {
			b.turn(e, s, t)
			return
		}
	}
}

func (b *builder) turn(e Event, s NamedSession, t *adminv1.Turn) {
	input := b.nodes[e.GetId()]
	began := e.GetCreatedAtUs()
	if input.WaitMillis != nil {
		began += int64(*input.WaitMillis * 1000)
	}
	entries := b.history[t.GetId()]
	// Only the last start is stored: a resumed turn began earlier.
	if slices.ContainsFunc(entries, func(row *busv1.Entry) bool {
		return row.GetKind() != contract.EntryInput && row.GetCreatedAtUs() < began
	}) {
		began, input.WaitMillis = e.GetCreatedAtUs(), nil
	}
	before := began
	n := &Node{
		Kind: KindTurn, ID: fmt.Sprint(t.GetId()), Name: s.GetAgent(), Session: e.GetKey(), Place: s.Name,
		State: cmp.Or(t.GetOutcome(), "running"), At: time.UnixMicro(began),
		TookMillis: span(began, t.GetEndedAtUs()), inputs: t.GetInputs(),
	}
	b.made[t.GetId()] = n
	input.Children = append(input.Children, n)
	for _, row := range entries {
		b.row(n, row, before)
		if row.GetKind() != contract.EntryInput {
			before = row.GetCreatedAtUs()
		}
		b.seen(row.GetCreatedAtUs())
	}
}

// row adds a step of a turn. It began when the step before it ended.
func (b *builder) row(turn *Node, row *busv1.Entry, before int64) {
	switch row.GetKind() {
	case contract.EntryAnswer:
		n := &Node{
			Kind: KindModel, ID: RowID(turn.Session, row.GetSeq()), Name: cmp.Or(row.GetModel(), "model"),
			Text: shorten(row.GetText()), State: "done", At: time.UnixMicro(before),
			TookMillis: span(before, row.GetCreatedAtUs()),
		}
		turn.Children = append(turn.Children, n)
		over := row.GetCreatedAtUs()
		for _, c := range row.GetCalls() {
			n.Calls = append(n.Calls, c.GetName())
			stored := b.calls[c.GetCallId()]
			if stored == nil {
				continue
			}
			// Calls of one answer mostly run one after the other.
			began := stored.GetStartedAtUs()
			if over < stored.GetEndedAtUs() || stored.GetEndedAtUs() == 0 {
				began = max(began, over)
			}
			call := &Node{
				Kind: KindTool, ID: c.GetCallId(), Name: c.GetName(), Text: shorten(string(c.GetArguments())),
				State: stored.GetState(), At: time.UnixMicro(began), TookMillis: span(began, stored.GetEndedAtUs()),
			}
			if stored.GetIsError() {
				call.State, call.Reason = "failed", shorten(stored.GetResult())
			} else {
				call.Result = shorten(Gist(stored.GetResult()))
			}
			for _, input := range turn.inputs {
				b.committed[commit{input, stored.GetEndedAtUs()}] = call
			}
			over = max(over, stored.GetEndedAtUs())
			b.tools[c.GetCallId()] = call
			turn.Children = append(turn.Children, call)
		}
	case contract.EntryNote, contract.EntryContext, contract.EntrySummary:
		turn.Children = append(turn.Children, &Node{
			Kind: KindNote, Name: row.GetKind(), Text: shorten(row.GetText()), At: time.UnixMicro(row.GetCreatedAtUs()),
		})
	}
}
