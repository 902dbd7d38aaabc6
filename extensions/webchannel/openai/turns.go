package openaiapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

const (
	turnsKept = 8192             // messages whose turns are known
	lingering = 30 * time.Second // how long events are followed after the last request
)

// turns knows what became of messages: which turn answers, with which message, and what it
// used. It follows the events of the kernel while there are requests.
type turns struct {
	read adminv1.ReadClient
	ctx  context.Context //nolint:containedctx // of the extension

	mu       sync.Mutex
	requests int
	stop     context.CancelFunc // nil: nothing is followed
	linger   *time.Timer
	known    map[string]*turn // by the event of the message
	order    []string         // of known, the oldest first
	failed   error            // why nothing is followed
}

// turn is what became of one message.
type turn struct {
	input   string                // the event for the agent; empty: none
	command string                // the event for the extension whose command it is; empty: none
	output  *contract.AgentOutput // nil: it runs
	event   string                // of the output
	answers map[string]bool       // messages that the output caused, by id
	direct  map[string]bool       // messages that answer without an agent
	usage   usage
	unsure  bool           // the usage of a model is estimated
	seen    map[int64]bool // events
	changed chan struct{}
}

// usage is the tokens of a turn; zero: not known.
type usage struct{ input, output, cached int64 }

// follow begins to follow what happens; the caller calls the function that it returns when
// its request ends. What happens after it returned is known.
func (t *turns) follow(ctx context.Context) (leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop == nil {
		newest, err := newestEvent(ctx, t.read)
		if err != nil {
			return nil, err
		}
		following, cancel := context.WithCancel(t.ctx) //nolint:gosec // rest calls it
		t.known, t.order, t.stop, t.failed = map[string]*turn{}, nil, cancel, nil
		go t.run(following, newest)
	}
	if t.linger != nil {
		t.linger.Stop()
		t.linger = nil
	}
	t.requests++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.requests--; t.requests == 0 && t.stop != nil {
			stop := t.stop
			t.linger = time.AfterFunc(lingering, func() { t.rest(stop) })
		}
	}, nil
}

// rest ends following, unless there is a request.
func (t *turns) rest(stop context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.requests == 0 {
		stop()
		t.stop, t.known, t.order = nil, nil, nil
	}
}

// newestEvent returns the number of the newest event.
func newestEvent(ctx context.Context, read adminv1.ReadClient) (seq int64, err error) {
	events, err := read.Events(ctx, &adminv1.EventsRequest{Limit: 1})
	if err != nil {
		return 0, err
	}
	for {
		e, err := events.Recv()
		if errors.Is(err, io.EOF) {
			return seq, nil
		}
		if err != nil {
			return 0, err
		}
		seq = e.GetSeq()
	}
}

func (t *turns) run(ctx context.Context, after int64) {
	events, err := t.read.Events(ctx, &adminv1.EventsRequest{After: after, Follow: true})
	for err == nil {
		var e *busv1.Event
		if e, err = events.Recv(); err == nil {
			t.note(e)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() == nil || t.ctx.Err() != nil {
		t.failed, t.stop = err, nil
		for _, known := range t.known {
			known.wake()
		}
	}
}

// of returns what became of a message, from its event.
func (t *turns) of(ctx context.Context, event string) (*turn, error) {
	t.mu.Lock()
	known := t.known[event]
	t.mu.Unlock()
	if known != nil {
		return known, nil
	}
	return t.earlier(ctx, event)
}

// earlier reads what became of a message that was said before events were followed.
func (t *turns) earlier(ctx context.Context, event string) (*turn, error) {
	said, err := read(t.read.Events(ctx, &adminv1.EventsRequest{Ids: []string{event}}))
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	known := t.add(event)
	t.mu.Unlock()
	if len(said) == 0 {
		return known, nil
	}
	const most = 1000
	since, err := read(t.read.Events(ctx, &adminv1.EventsRequest{
		After: said[0].GetSeq(), CorrelationId: event, Ascending: true, Limit: most,
	}))
	for _, e := range since {
		t.note(e)
	}
	return known, err
}

func read(events adminv1.Read_EventsClient, err error) (all []*busv1.Event, _ error) {
	for err == nil {
		var e *busv1.Event
		if e, err = events.Recv(); err == nil {
			all = append(all, e)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

// add begins to know a message; mu is held.
func (t *turns) add(event string) *turn {
	if known := t.known[event]; known != nil {
		return known
	}
	for len(t.order) >= turnsKept {
		delete(t.known, t.order[0])
		t.order = t.order[1:]
	}
	known := &turn{answers: map[string]bool{}, direct: map[string]bool{}, seen: map[int64]bool{},
		changed: make(chan struct{})}
	if t.known == nil {
		t.known = map[string]*turn{}
	}
	t.known[event] = known
	t.order = append(t.order, event)
	return known
}

// note takes in an event.
func (t *turns) note(e *busv1.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	topic := e.GetTopic()
	if topic == contract.TopicUserMessage {
		t.add(e.GetId())
		return
	}
	known := t.known[e.GetCorrelationId()]
	if known == nil || known.seen[e.GetSeq()] {
		return
	}
	known.seen[e.GetSeq()] = true
	switch {
	case strings.HasPrefix(topic, contract.TopicAgentInput):
		if known.input == "" && e.GetCausationId() == e.GetCorrelationId() {
			known.input = e.GetId()
		}
	case strings.HasPrefix(topic, contract.TopicCommand):
		if e.GetCausationId() == e.GetCorrelationId() {
			known.command = e.GetId()
		}
	case topic == contract.TopicAgentOutput:
		var out contract.AgentOutput
		if known.output == nil && json.Unmarshal(e.GetPayload(), &out) == nil && out.Extension == "" && out.ReplyTo != "" {
			known.output, known.event = &out, e.GetId()
		}
	case strings.HasPrefix(topic, contract.TopicChannelSend):
		switch e.GetCausationId() {
		case known.event:
			known.answers[e.GetId()] = true
		case e.GetCorrelationId(), known.command:
			known.direct[e.GetId()] = true
		}
	case topic == contract.TopicModelUsage:
		var used contract.ModelUsage
		if known.output == nil && json.Unmarshal(e.GetPayload(), &used) == nil {
			known.usage.input += used.InputTokens
			known.usage.output += used.OutputTokens
			known.usage.cached += used.CachedTokens
			known.unsure = known.unsure || used.Estimated
		}
	default:
		return
	}
	known.wake()
}

// wake tells those who wait that something has changed; the turns' mu is held.
func (t *turn) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// state is a turn at one moment.
type state struct {
	input   string
	output  *contract.AgentOutput
	usage   *usage // nil: not known
	changed <-chan struct{}
	err     error // events aren't followed any more
}

func (t *turns) look(at *turn) state {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := state{input: at.input, output: at.output, changed: at.changed, err: t.failed}
	if u := at.usage; !at.unsure && u != (usage{}) {
		now.usage = &u
	}
	return now
}

// ends reports whether the message with an id is the last one of the turn, or an answer
// without one.
func (t *turns) ends(at *turn, id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return at.answers[id] || at.direct[id] && at.input == ""
}
