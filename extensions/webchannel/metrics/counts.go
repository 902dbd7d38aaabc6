package metrics

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/topic"
)

const (
	unansweredKept = 10_000 // messages whose answer may still come
	maxSeries      = 5000   // values of the labels of one metric; later ones count as other
)

// counts are what was counted since the first scrape.
type counts struct {
	read adminv1.ReadClient

	mu         sync.Mutex
	values     map[series]float64
	durations  map[series]*histogram
	perName    map[string]int
	unanswered map[string]message // by the event of the message
	order      []string
}

// series is one metric with its labels.
type series struct{ name, first, second, third string }

// message is one that was not answered yet.
type message struct {
	channel string
	at      int64
}

func newCounts(read adminv1.ReadClient) *counts {
	return &counts{
		read: read, values: map[series]float64{}, durations: map[series]*histogram{}, perName: map[string]int{},
		unanswered: map[string]message{},
	}
}

// other is the value of labels when there are too many.
const other = "other"

// known returns the series, or the one for others; mu is held.
func (c *counts) known(s series) series {
	_, value := c.values[s]
	if _, duration := c.durations[s]; value || duration {
		return s
	}
	if c.perName[s.name] >= maxSeries {
		return series{s.name, other, other, other}
	}
	c.perName[s.name]++
	return s
}

// add adds to a counter; mu is held.
func (c *counts) add(n float64, name string, values ...string) {
	s := seriesOf(name, values)
	c.values[c.known(s)] += n
}

// observe adds a duration to a histogram; mu is held.
func (c *counts) observe(d time.Duration, name string, values ...string) {
	s := c.known(seriesOf(name, values))
	if c.durations[s] == nil {
		c.durations[s] = &histogram{}
	}
	c.durations[s].observe(d)
}

func seriesOf(name string, values []string) series {
	values = append(values, "", "", "")
	return series{name, values[0], values[1], values[2]}
}

// note counts an event.
func (c *counts) note(ctx context.Context, e *busv1.Event) {
	c.mu.Lock()
	c.event(e)
	c.mu.Unlock()
	if e.GetTopic() == contract.TopicAgentOutput {
		c.turn(ctx, e)
	}
}

// event counts an event by itself; mu is held.
func (c *counts) event(e *busv1.Event) {
	name := e.GetTopic()
	c.add(1, "events_total", topicLabel(name))
	switch {
	case name == contract.TopicUserMessage:
		c.add(1, "messages_total", e.GetSource())
		if len(c.order) >= unansweredKept {
			delete(c.unanswered, c.order[0])
			c.order = c.order[1:]
		}
		c.unanswered[e.GetId()] = message{e.GetSource(), e.GetCreatedAtUs()}
		c.order = append(c.order, e.GetId())
	case strings.HasPrefix(name, contract.TopicChannelSend):
		channel := strings.TrimPrefix(name, contract.TopicChannelSend)
		c.add(1, "sends_total", channel)
		var sent contract.ChannelSend
		asked, waits := c.unanswered[e.GetCorrelationId()]
		if waits && json.Unmarshal(e.GetPayload(), &sent) == nil && sent.Kind == contract.SendReply && sent.Text != "" {
			delete(c.unanswered, e.GetCorrelationId())
			c.observe(micros(e.GetCreatedAtUs()-asked.at), "reply_seconds", asked.channel)
		}
	case name == contract.TopicModelUsage:
		var u contract.ModelUsage
		if json.Unmarshal(e.GetPayload(), &u) == nil {
			c.usage(u)
		}
	case name == contract.TopicDeliveryDead:
		var d contract.DeliveryDead
		if json.Unmarshal(e.GetPayload(), &d) == nil {
			c.add(1, "dead_letters_total", d.Extension, topicLabel(d.Topic))
		}
	}
}

// usage counts what a completion took; mu is held.
func (c *counts) usage(u contract.ModelUsage) {
	c.add(1, "model_calls_total", u.Agent, u.Model)
	kind := func(kind string) string {
		if u.Estimated {
			return "estimated_" + kind
		}
		return kind
	}
	c.add(float64(u.InputTokens), "tokens_total", u.Agent, u.Model, kind("input"))
	c.add(float64(u.OutputTokens), "tokens_total", u.Agent, u.Model, kind("output"))
	if u.CachedTokens > 0 {
		c.add(float64(u.CachedTokens), "tokens_total", u.Agent, u.Model, "cached_input")
	}
	if u.CostMicros > 0 {
		const millionth = 1e-6
		c.add(float64(u.CostMicros)*millionth, "money_total", u.Agent, u.Model, cmp.Or(u.Currency, "default"))
	}
}

// topicLabel is a topic without what strangers could choose.
func topicLabel(name string) string {
	if topic.Kernel(name) {
		return name
	}
	return topic.Owner(name) + ".*"
}

func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// turn measures a turn that has ended, by its rows.
func (c *counts) turn(ctx context.Context, e *busv1.Event) {
	var out contract.AgentOutput
	if json.Unmarshal(e.GetPayload(), &out) != nil || out.Turn == 0 {
		return
	}
	agent := e.GetSource()
	turns, err := c.read.Turns(ctx, &adminv1.TurnsRequest{Ids: []int64{out.Turn}})
	if err != nil {
		return // it was deleted, or the kernel ends
	}
	turn, err := turns.Recv()
	if err != nil {
		return
	}
	if sessions, err := c.read.Sessions(ctx, &adminv1.SessionsRequest{Ids: []string{out.Session}}); err == nil {
		if s, err := sessions.Recv(); err == nil {
			agent = s.GetAgent() // also of an output that the kernel published
		}
	}
	rows := c.rows(ctx, out)
	calls := c.calls(ctx, rows)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(1, "turns_total", agent, out.Outcome)
	if turn.GetEndedAtUs() > 0 {
		c.observe(micros(turn.GetEndedAtUs()-turn.GetStartedAtUs()), "turn_seconds", agent)
	}
	before := turn.GetStartedAtUs()
	for _, row := range rows {
		if row.GetKind() == contract.EntryAnswer && row.GetModel() != "" {
			c.observe(micros(row.GetCreatedAtUs()-before), "model_call_seconds", row.GetModel())
		}
		before = row.GetCreatedAtUs()
	}
	for _, call := range calls {
		outcome := "ok"
		if call.GetIsError() {
			outcome = "error"
		}
		c.add(1, "tool_calls_total", call.GetName(), outcome)
		if call.GetEndedAtUs() > 0 && call.GetStartedAtUs() > 0 {
			c.observe(micros(call.GetEndedAtUs()-call.GetStartedAtUs()), "tool_call_seconds", call.GetName())
		}
	}
}

// rows returns the history of a turn.
func (c *counts) rows(ctx context.Context, out contract.AgentOutput) (all []*busv1.Entry) {
	rows, err := c.read.History(ctx, &adminv1.HistoryRequest{Session: out.Session, Turns: []int64{out.Turn}})
	for err == nil {
		var row *busv1.Entry
		if row, err = rows.Recv(); err == nil {
			all = append(all, row)
		}
	}
	return all
}

// calls returns the tool calls of history rows. A model may invent names, so calls of tools
// that never ran count for no tool.
func (c *counts) calls(ctx context.Context, rows []*busv1.Entry) (all []*adminv1.Call) {
	var ids []string
	for _, row := range rows {
		for _, call := range row.GetCalls() {
			ids = append(ids, call.GetCallId())
		}
	}
	if len(ids) == 0 {
		return nil
	}
	calls, err := c.read.Calls(ctx, &adminv1.CallsRequest{Ids: ids})
	for err == nil {
		var call *adminv1.Call
		if call, err = calls.Recv(); err == nil {
			if call.GetStartedAtUs() == 0 {
				call.Name = "none"
			}
			all = append(all, call)
		}
	}
	return all
}

// described are the counted metrics: their help and the names of their labels.
var described = map[string]struct {
	help   string
	labels []string
}{
	"events_total":       {"Events that were accepted.", []string{"topic"}},
	"messages_total":     {"Messages of people.", []string{"channel"}},
	"sends_total":        {"Messages for people, each part of a long one.", []string{"channel"}},
	"reply_seconds":      {"From a message to the first text that answers it.", []string{"channel"}},
	"turns_total":        {"Turns of agents that ended.", []string{"agent", "outcome"}},
	"turn_seconds":       {"From the beginning of a turn to its end.", []string{"agent"}},
	"model_calls_total":  {"Completions of models.", []string{"agent", "model"}},
	"model_call_seconds": {"From the row of a turn before a model's answer to the answer.", []string{"model"}},
	"tool_calls_total":   {"Tool calls of turns that ended; none: they never ran.", []string{"tool", "outcome"}},
	"tool_call_seconds":  {"From the start of a tool call to its result.", []string{"tool"}},
	"tokens_total":       {"Tokens of completions. cached_input is a part of input.", []string{"agent", "model", "kind"}},
	"money_total":        {"Money by the configured prices.", []string{"agent", "model", "currency"}},
	"dead_letters_total": {"Deliveries that were given up.", []string{"extension", "topic"}},
}

// write adds what was counted to a scrape.
func (c *counts) write(f *families) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pairs := func(s series) (all []string) {
		values := []string{s.first, s.second, s.third}
		for i, label := range described[s.name].labels {
			all = append(all, label, values[i])
		}
		return all
	}
	for s, n := range c.values {
		f.counter(s.name, described[s.name].help, n, pairs(s)...)
	}
	for s, h := range c.durations {
		f.histogram(s.name, described[s.name].help, h, pairs(s)...)
	}
}
