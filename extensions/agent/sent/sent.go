// Package sent shows the requests that models were sent.
//
// # Promises
//
// Nothing is kept for it: a request is built again of the history, by the code that built it.
// Histories have what changes, such as the time and the context of a turn, so that messages
// are those of the real request, byte for byte. Differences lists what can differ.
package sent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/extensions/agent"
	"github.com/switchboard-run/switchboard/sdk/admin"
	loop "github.com/switchboard-run/switchboard/sdk/agent"
)

// Differences says what can differ in the real request.
const Differences = "Built again from the history. The system prompt and the tools are today's; " +
	"the real request also had the pictures of its turn."

// Request is a request to a model, and the answer to it.
type Request struct {
	Row      string    `json:"row"` // id of the row of the answer
	Session  string    `json:"session"`
	Turn     int64     `json:"turn"`
	Agent    string    `json:"agent"`
	Model    string    `json:"model"` // that answered
	At       time.Time `json:"at"`    // of the answer
	Rebuilt  string    `json:"rebuilt"`
	Bytes    int       `json:"bytes"` // of the texts of the messages and tools
	Messages []Message `json:"messages"`
	Tools    []Tool    `json:"tools"`
	Answer   Message   `json:"answer"`
}

// Message is one message of a request.
type Message struct {
	Role    string `json:"role"` // system, user, assistant, tool
	Name    string `json:"name,omitempty"`
	CallID  string `json:"call_id,omitempty"`
	Content string `json:"content"`
	Calls   []Call `json:"calls,omitempty"`
}

// Call is a tool call of an assistant's message.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Tool describes a tool to the model.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

// rows is how many rows of a history are read: a request has at most 100 besides those of
// its turn, and a summary may stand farther away.
const rows = 1000

// Read returns the request that led to an answer, by the id of its row, such as s1.14.
func Read(ctx context.Context, c adminv1.ReadClient, id string) (*Request, error) {
	session, seq, ok := admin.ParseRowID(id)
	if !ok {
		return nil, fmt.Errorf("%w: %q is not the answer of a model: name it like s1.14", contract.ErrInvalid, id)
	}
	s, err := admin.Session(ctx, c, session)
	if err != nil {
		return nil, err
	}
	history, err := admin.History(ctx, c, &adminv1.HistoryRequest{Session: session, Before: seq + 1, Limit: rows})
	if err != nil {
		return nil, err
	}
	if n := len(history); n == 0 || history[n-1].GetSeq() != seq || history[n-1].GetKind() != contract.EntryAnswer {
		return nil, fmt.Errorf("%w: session %s has no answer of a model in row %d", contract.ErrNotFound, session, seq)
	}
	answer := history[len(history)-1].Entry
	p := loop.Past{Now: time.UnixMicro(answer.GetCreatedAtUs())}
	for _, e := range history[:len(history)-1] {
		p.Rows = append(p.Rows, e.Entry)
	}
	if err := describe(ctx, c, &p, s.Session, answer.GetTurn()); err != nil {
		return nil, err
	}
	request, err := loop.Rebuild(p)
	if err != nil {
		return nil, fmt.Errorf("build the request of row %s again: %w", id, err)
	}
	out := &Request{
		Row: id, Session: session, Turn: answer.GetTurn(), Agent: s.GetAgent(),
		Model: cmp.Or(answer.GetModel(), request.GetModel()), At: p.Now, Rebuilt: Differences, Messages: []Message{},
		Tools:  []Tool{},
		Answer: Message{Role: "assistant", Content: answer.GetText(), Calls: callsOf(answer.GetCalls())},
	}
	for _, m := range request.GetMessages() {
		out.Bytes += len(m.GetContent())
		out.Messages = append(out.Messages, Message{
			m.GetRole(), m.GetName(), m.GetCallId(), m.GetContent(), callsOf(m.GetCalls()),
		})
	}
	for _, t := range request.GetTools() {
		out.Bytes += len(t.GetName()) + len(t.GetDescription()) + len(t.GetSchema())
		out.Tools = append(out.Tools, Tool{t.GetName(), t.GetDescription(), t.GetSchema()})
	}
	return out, nil
}

func callsOf(calls []*busv1.Call) (all []Call) {
	for _, c := range calls {
		all = append(all, Call{c.GetCallId(), c.GetName(), string(c.GetArguments())})
	}
	return all
}

// describe fills in the agent, its tools, and what the turn knew of its conversation.
func describe(ctx context.Context, c adminv1.ReadClient, p *loop.Past, s *adminv1.Session, turn int64) error {
	dir, err := c.Directory(ctx, &adminv1.DirectoryRequest{Tools: true})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(dir.GetAgents(), func(a *adminv1.Agent) bool { return a.GetId() == s.GetAgent() })
	if i < 0 || dir.GetAgents()[i].GetSpec() == nil {
		return fmt.Errorf("%w: the agent %s doesn't exist any more: its requests cannot be built again",
			contract.ErrNotFound, s.GetAgent())
	}
	of := dir.GetAgents()[i]
	p.Name, p.Spec, p.Prompts = cmp.Or(of.GetName(), of.GetId()), of.GetSpec(), agent.BuiltinPrompts()
	for _, t := range dir.GetTools() {
		if slices.Contains(of.GetTools(), t.GetName()) {
			p.Tools = append(p.Tools, t)
		}
	}
	p.Turn = &busv1.TurnContext{Session: s.GetId(), Turn: turn, Group: s.GetGroup(), Channel: s.GetChannel()}
	for _, ch := range dir.GetChannels() {
		if ch.GetId() == s.GetChannel() {
			p.Turn.ChannelName = ch.GetName()
		}
		p.Channels = append(p.Channels, &kernelv1.Channel{
			Id: ch.GetId(), Name: ch.GetName(), Readiness: ch.GetReadiness(), Default: ch.GetId() == dir.GetDefaultChannel(),
		})
	}
	// A session of an extension also describes that one's tools.
	switch kind, _, _ := strings.Cut(s.GetKey(), ":"); kind {
	case "task":
		p.Turn.Extension = "tasks"
	case "link":
		p.Turn.Extension = "links"
	}
	return override(ctx, c, p, turn)
}

// override reads the model and the instructions that the input of the turn named.
func override(ctx context.Context, c adminv1.ReadClient, p *loop.Past, turn int64) error {
	for _, e := range p.Rows {
		if e.GetTurn() != turn || e.GetKind() != contract.EntryInput || e.GetInput() == "" {
			continue
		}
		event, err := admin.EventByID(ctx, c, e.GetInput())
		if errors.Is(err, contract.ErrNotFound) { // retention has removed it
			return nil
		}
		var in contract.AgentInput
		if err != nil || json.Unmarshal(event.GetPayload(), &in) != nil {
			return err
		}
		p.Model, _ = in.Meta[contract.MetaModel].(string)
		if instead, ok := in.Meta[contract.MetaInstructions].(string); ok {
			p.Instructions = &instead
		}
		return nil
	}
	return nil
}
