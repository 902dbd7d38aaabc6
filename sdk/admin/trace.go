package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// Trace shows one message and what it led to as a tree: from the event of a person or a
// schedule, through inputs, turns with their model steps and tool calls, and outputs, to
// the platform's id of each message sent, with the time of each step.
//
// It is built from stored rows, so it works for everything that retention has not
// removed. A step that has not ended has no duration.
type Trace struct {
	Root   string    `json:"root"`   // id of the first event
	Asked  string    `json:"asked"`  // id of the requested event
	At     time.Time `json:"at"`     // of the root
	Millis float64   `json:"millis"` // until the last step that has ended
	// Also lists other events with the same id of a platform: such ids are often
	// unique within a conversation only.
	Also []string `json:"also,omitempty"`
	// More says that the tree has more events than are shown.
	More bool `json:"more,omitempty"`
	// Until is the last event that was searched; empty: all were.
	Until string `json:"until,omitempty"`
	Tree  *Node  `json:"tree"`
}

// Kinds of a node.
const (
	KindEvent    = "event"
	KindDelivery = "delivery" // to an extension that subscribed
	KindTurn     = "turn"
	KindModel    = "model" // one answer of a model
	KindTool     = "tool"  // one call of a tool, by a model or by an extension
	KindNote     = "note"
)

// Node is one step.
type Node struct {
	Kind string `json:"kind"`
	// ID is an event's (e1), a call's (c1), that of the row of a model's answer (s1.2), or a
	// turn's number.
	ID string `json:"id,omitempty"`
	// Name is a topic, a model, a tool, an extension or an agent.
	Name    string `json:"name"`
	Source  string `json:"source,omitempty"` // of an event; of a call, the extension that made it by itself
	Session string `json:"session,omitempty"`
	Place   string `json:"place,omitempty"` // the session in words
	// Input is the kind of an input, Sender whose it is, and Thread the exchange
	// on a link that it belongs to.
	Input  string `json:"input_kind,omitempty"`
	Sender string `json:"sender,omitempty"`
	Thread string `json:"thread,omitempty"`
	Text   string `json:"text,omitempty"`
	// Result is the beginning of what a call returned.
	Result string    `json:"result,omitempty"`
	Calls  []string  `json:"calls,omitempty"` // names of the tools that an answer asks for
	State  string    `json:"state,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	// WaitMillis is the time until its handling began, TookMillis the time from then,
	// or from At, until its end. Nil: not known, or not yet.
	WaitMillis *float64 `json:"wait_millis,omitempty"`
	TookMillis *float64 `json:"took_millis,omitempty"`
	Attempts   int      `json:"attempts,omitempty"` // that failed
	// Conversation and ProviderID say where a text went and what the platform
	// calls it.
	Conversation string  `json:"conversation,omitempty"`
	ProviderID   string  `json:"provider_id,omitempty"`
	Children     []*Node `json:"children,omitempty"`

	inputs []string // of a turn
}

// maxEvents bounds the events of one tree.
const maxEvents = 2000

// Followed is how many events after the root of a tree are searched for those of
// the tree, and how many of the newest for a platform's id: a store may have
// millions.
const Followed = 300_000

// maxReceived is how many messages of people are searched for a platform's id.
const maxReceived = 20_000

// ReadTrace returns the trace of an event, or of a message that is named by its
// platform's id.
func ReadTrace(ctx context.Context, c adminv1.ReadClient, id string) (*Trace, error) {
	last, err := LastSeq(ctx, c)
	if err != nil {
		return nil, err
	}
	asked, also, err := find(ctx, c, id, last)
	if err != nil {
		return nil, err
	}
	root := eventSeq(asked.GetCorrelationId())
	events, err := WithDeliveries(ctx, c, &adminv1.EventsRequest{
		After: root - 1, Before: root + Followed + 1, CorrelationId: asked.GetCorrelationId(),
		Limit: maxEvents + 1, Ascending: true,
	})
	if err != nil {
		return nil, err
	}
	if asked.GetSeq() > root+Followed { // it came much later
		events = append(events, asked)
	}
	t := &Trace{Asked: asked.GetId(), Also: also, More: len(events) > maxEvents}
	if t.More {
		events = events[:maxEvents]
	}
	if root+Followed < last && !t.More {
		t.Until = fmt.Sprintf("e%d", root+Followed)
	}
	rows, err := readRows(ctx, c, events)
	if err != nil {
		return nil, err
	}
	b := newBuilder(rows)
	t.Tree = b.build()
	t.Root, t.At = t.Tree.ID, t.Tree.At
	if b.last > 0 {
		t.Millis = millis(t.Tree.At.UnixMicro(), b.last)
	}
	return t, nil
}

// rows are the rows of a tree.
type rows struct {
	events   []Event // in the order of acceptance
	sessions map[string]NamedSession
	turns    map[string][]*adminv1.Turn // by session
	history  map[int64][]*busv1.Entry   // by turn
	calls    map[string]*adminv1.Call
}

// readRows reads what belongs to events.
func readRows(ctx context.Context, c adminv1.ReadClient, events []Event) (*rows, error) {
	r := &rows{
		events: events, sessions: map[string]NamedSession{}, turns: map[string][]*adminv1.Turn{},
		history: map[int64][]*busv1.Entry{}, calls: map[string]*adminv1.Call{},
	}
	var sessions []string
	var turns []int64
	for _, e := range events {
		var p struct {
			Session string
			Turn    int64
		}
		_ = json.Unmarshal(e.GetPayload(), &p) // not every payload is an object
		sessions = append(sessions, p.Session)
		if strings.HasPrefix(e.GetTopic(), contract.TopicAgentInput) {
			sessions = append(sessions, e.GetKey())
		}
		if e.GetTopic() == contract.TopicAgentOutput {
			turns = append(turns, p.Turn)
		}
	}
	for ids := range slices.Chunk(unique(sessions), maxNamed) {
		found, err := Sessions(ctx, c, &adminv1.SessionsRequest{Ids: ids})
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			r.sessions[s.GetId()] = s
			turns = append(turns, s.GetOpenTurns()...)
		}
	}
	inputs := map[string]bool{}
	for _, e := range events {
		inputs[e.GetId()] = true
	}
	for ids := range slices.Chunk(unique(turns), maxNamed) {
		found, err := all(c.Turns(ctx, &adminv1.TurnsRequest{Ids: ids}))
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			if slices.ContainsFunc(t.GetInputs(), func(id string) bool { return inputs[id] }) {
				r.turns[t.GetSession()] = append(r.turns[t.GetSession()], t)
			}
		}
	}
	return r, r.readHistories(ctx, c)
}

func (r *rows) readHistories(ctx context.Context, c adminv1.ReadClient) error {
	var calls []string
	for session, turns := range r.turns {
		if r.sessions[session].Session == nil {
			continue // deleted: its rows are gone
		}
		q := &adminv1.HistoryRequest{Session: session}
		for _, t := range turns {
			q.Turns = append(q.Turns, t.GetId())
		}
		entries, err := all(c.History(ctx, q))
		if err != nil && !errors.Is(err, contract.ErrNotFound) {
			return err
		}
		for _, e := range entries {
			r.history[e.GetTurn()] = append(r.history[e.GetTurn()], e)
			for _, call := range e.GetCalls() {
				calls = append(calls, call.GetCallId())
			}
		}
	}
	for ids := range slices.Chunk(calls, maxNamed) {
		found, err := all(c.Calls(ctx, &adminv1.CallsRequest{Ids: ids}))
		if err != nil {
			return err
		}
		for _, call := range found {
			r.calls[call.GetId()] = call
		}
	}
	return nil
}

// unique returns the values without duplicates and without the zero value.
func unique[T comparable](values []T) (out []T) {
	var none T
	seen := map[T]bool{none: true}
	for _, v := range values {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}

// eventSeq returns the seq of an event's id; 0: it is no such id.
func eventSeq(id string) int64 {
	digits, ok := strings.CutPrefix(id, "e")
	seq, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || seq < 0 {
		return 0
	}
	return seq
}

// find returns the event of an id, and other events with the same id of a platform.
func find(ctx context.Context, c adminv1.ReadClient, id string, last int64) (e Event, also []string, err error) {
	if eventSeq(id) > 0 {
		e, err := EventByID(ctx, c, id)
		return e, nil, err
	}
	if id == "" {
		return e, nil, fmt.Errorf("%w: name an event or a message", contract.ErrInvalid)
	}
	const mostSent = 10
	sent, err := Deliveries(ctx, c, &adminv1.DeliveriesRequest{
		ProviderId: id, After: max(0, last-Followed), Limit: mostSent,
	})
	if err != nil {
		return e, nil, err
	}
	received, err := Events(ctx, c, &adminv1.EventsRequest{
		Topic: contract.TopicUserMessage, After: max(0, last-Followed), Limit: maxReceived,
	})
	if err != nil {
		return e, nil, err
	}
	also = eventsOf(sent)
	for _, e := range received {
		var m contract.UserMessage
		if json.Unmarshal(e.GetPayload(), &m) != nil || m.MessageID == "" {
			continue
		}
		if m.MessageID == id || m.ConversationID+"/"+m.MessageID == id {
			also = append(also, e.GetId())
		}
	}
	if len(also) == 0 {
		where := ""
		if last > Followed {
			where = fmt.Sprintf(" among the newest %d events", Followed)
		}
		return e, nil, fmt.Errorf("%w: no event and no platform's message has the id %q%s",
			contract.ErrNotFound, id, where)
	}
	e, err = EventByID(ctx, c, also[0])
	return e, also[1:], err
}

func millis(from, to int64) float64 { return float64(max(0, to-from)) / 1000 }

func span(from, to int64) *float64 {
	if from == 0 || to == 0 {
		return nil
	}
	ms := millis(from, to)
	return &ms
}

// shorten returns the beginning of a text in one line.
func shorten(s string) string { return shortenTo(s, 120) }

func shortenTo(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit-1]) + "…"
	}
	return s
}

// Calls returns the calls with ids, as far as they exist.
func Calls(ctx context.Context, c adminv1.ReadClient, ids ...string) ([]*adminv1.Call, error) {
	return all(c.Calls(ctx, &adminv1.CallsRequest{Ids: ids}))
}
