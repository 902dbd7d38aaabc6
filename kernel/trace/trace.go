// Package trace shows one message as a tree: what it led to, from the event
// that a person or a schedule caused, over inputs, turns with their model steps
// and tool calls, and outputs, to the platform's id of what was sent, with the
// time that each step took.
//
// A trace is read from what the journal holds. Nothing is recorded for it
// alone, so it works for everything that retention has not removed yet, and
// tells no more than the rows do: of a step that is not over, no duration.
package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Trace is the tree of one message.
type Trace struct {
	Root   string    `json:"root"`   // id of the event it began with
	Asked  string    `json:"asked"`  // id of the event that was asked for
	At     time.Time `json:"at"`     // of the root
	Millis float64   `json:"millis"` // until the last step that is over
	// Also are other events that the same platform's id belongs to: such ids
	// are often unique within a conversation only.
	Also []string `json:"also,omitempty"`
	// More says that the tree has more events than are shown.
	More bool `json:"more,omitempty"`
	// Until is the event behind which nothing was looked at; empty: all were.
	Until string `json:"until,omitempty"`
	Tree  *Node  `json:"tree"`
}

// Kinds of a node.
const (
	KindEvent    = "event"
	KindDelivery = "delivery" // to an extension that subscribed
	KindTurn     = "turn"
	KindModel    = "model" // one answer of a model
	KindTool     = "tool"  // one call of a tool
	KindNote     = "note"
)

// Node is one step.
type Node struct {
	Kind string `json:"kind"`
	// ID is an event's (e1), a call's (c1), or a turn's number.
	ID string `json:"id,omitempty"`
	// Name is a topic, a model, a tool, an extension or an agent.
	Name    string `json:"name"`
	Source  string `json:"source,omitempty"` // of an event
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
	// WaitMillis is the time until somebody took it, TookMillis from then, or
	// from At, until it was done. Nil: not known (yet).
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

// Followed is how many events behind the root of a tree, of any, are looked at for
// those of the tree, and how many of the newest for a platform's id: a store may
// have millions.
const Followed = 300_000

// Build returns the trace of an event's id or of a platform's id of a message.
func Build(r journal.Reader, id string) (*Trace, error) {
	asked, also, err := find(r, id)
	if err != nil {
		return nil, err
	}
	root := journal.ParseEventID(asked.GetCorrelationId())
	last, err := r.LastSeq()
	if err != nil {
		return nil, err
	}
	events, err := r.Events(journal.EventFilter{
		After: root - 1, Before: root + Followed + 1, Correlation: asked.GetCorrelationId(), Limit: maxEvents + 1, Ascending: true,
	})
	if err != nil {
		return nil, err
	}
	if asked.GetSeq() > root+Followed { // it came much later
		events = append(events, asked)
	}
	b := &builder{r: r, nodes: map[string]*Node{}, turns: map[int64]*Node{}, calls: map[string]*Node{}, committed: map[commit]*Node{}, places: map[string]string{}}
	t := &Trace{Asked: asked.GetId(), Also: also, More: len(events) > maxEvents}
	if t.More {
		events = events[:maxEvents]
	}
	if root+Followed < last && !t.More {
		t.Until = journal.EventID(root + Followed)
	}
	if t.Tree, err = b.build(events); err != nil {
		return nil, err
	}
	t.Root, t.At = t.Tree.ID, t.Tree.At
	if b.last > 0 {
		t.Millis = millis(t.Tree.At.UnixMicro(), b.last)
	}
	return t, nil
}

// searched is how many messages are looked at for a platform's id.
const searched = 20_000

// find is the event that is meant.
func find(r journal.Reader, id string) (e *busv1.Event, also []string, err error) {
	if seq := journal.ParseEventID(id); seq > 0 {
		e, err := r.Event(seq)
		if err == nil && e == nil {
			err = fmt.Errorf("%w: there is no event %s (any more)", contract.ErrNotFound, id)
		}
		return e, nil, err
	}
	if id == "" {
		return nil, nil, fmt.Errorf("%w: name an event or a message", contract.ErrInvalid)
	}
	last, err := r.LastSeq()
	if err != nil {
		return nil, nil, err
	}
	sent, err := r.Deliveries(journal.DeliveryFilter{ProviderID: id, After: max(0, last-Followed), Limit: 10})
	if err != nil {
		return nil, nil, err
	}
	for _, d := range sent {
		also = append(also, journal.EventID(d.Seq))
	}
	received, err := receivedAs(r, id, last)
	if err != nil {
		return nil, nil, err
	}
	if also = append(also, received...); len(also) == 0 {
		where := ""
		if last > Followed {
			where = fmt.Sprintf(" among the newest %d events", Followed)
		}
		return nil, nil, fmt.Errorf("%w: no event and no message of a platform is called %q%s; `switchboard events tail` shows what there is", contract.ErrNotFound, id, where)
	}
	e, err = r.Event(journal.ParseEventID(also[0]))
	if err == nil && e == nil {
		err = errors.New("its event is gone")
	}
	return e, also[1:], err
}

// receivedAs are the messages of people that their platform calls so, the
// newest first. A Telegram message may also be given as chat/message.
func receivedAs(r journal.Reader, id string, last int64) (ids []string, err error) {
	for before, left := int64(0), searched; left > 0; left -= 500 {
		events, err := r.Events(journal.EventFilter{Topic: contract.TopicUserMessage, After: last - Followed, Before: before, Limit: 500})
		if err != nil || len(events) == 0 {
			return ids, err
		}
		for _, e := range events {
			var m contract.UserMessage
			if json.Unmarshal(e.GetPayload(), &m) == nil && m.MessageID != "" && (m.MessageID == id || m.ConversationID+"/"+m.MessageID == id) {
				ids = append(ids, e.GetId())
			}
		}
		before = events[len(events)-1].GetSeq()
	}
	return ids, nil
}

func millis(from, to int64) float64 { return float64(max(0, to-from)) / 1000 }

func span(from, to int64) *float64 {
	if from == 0 || to == 0 {
		return nil
	}
	ms := millis(from, to)
	return &ms
}

// shorten is the beginning of a text in one line.
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 120 {
		s = string(r[:119]) + "…"
	}
	return s
}
