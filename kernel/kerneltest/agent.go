package kerneltest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Agent is an agent that the test plays.
type Agent struct {
	*Extension
	ID string

	noted map[string]bool // records, by event
}

// Agent returns an agent that may use every tool that is not private.
func (w *World) Agent(id string) *Agent {
	w.T.Helper()
	a := &Agent{ID: id, noted: map[string]bool{}}
	a.Extension = w.Extension(bus.Actor{ID: id, Agent: true}, bus.Subscription{
		Pattern: contract.TopicAgentInput + id, Ordered: true, AckWait: 10 * time.Minute, MaxDeliver: 3,
	})
	w.Know(func(s *directory.Snapshot) {
		s.Agents = append(s.Agents, directory.Agent{
			ID:    id,
			Name:  id,
			State: contract.StateActive,
			Spec:  &extensionv1.AgentSpec{Model: "default", UsesTools: []string{"*"}},
		})
	})
	return a
}

// Turn is an input that an agent holds, and what it makes of it.
type Turn struct {
	agent    *Agent
	Delivery *busv1.Delivery
	Input    contract.AgentInput

	seq   int64
	begun bool
}

// Hears takes the agent's next input, which has the text.
func (a *Agent) Hears(text string) *Turn {
	a.w.T.Helper()
	t := a.HearsNext()
	if t.Input.Text != text {
		a.w.T.Fatalf("%s hears %q, want %q", a.ID, t.Input.Text, text)
	}
	return t
}

// HearsNext takes the agent's next input.
func (a *Agent) HearsNext() *Turn {
	a.w.T.Helper()
	return a.Holds(a.Take())
}

// Holds is what the agent makes of an input that it has taken.
func (a *Agent) Holds(d *busv1.Delivery) *Turn {
	a.w.T.Helper()
	if d.GetTurn() == nil {
		a.w.T.Fatalf("%s gets %s without the context of a turn", a.ID, d.GetEvent().GetId())
	}
	return &Turn{
		agent: a, Delivery: d, Input: Decode[contract.AgentInput](a.w.T, d.GetEvent()),
		seq: d.GetTurn().GetHistorySeq(), begun: d.GetTurn().GetResumed(),
	}
}

// HearsRecord is the agent's next record, which has the words in it: one that the
// kernel has written down, or the next input, of which the agent takes note.
func (a *Agent) HearsRecord(words ...string) contract.AgentInput {
	a.w.T.Helper()
	in, written := a.written()
	if !written {
		t := a.HearsNext()
		if in = t.Input; in.Kind != contract.InputRecord {
			a.w.T.Fatalf("%s hears %q of kind %s, want a record", a.ID, in.Text, in.Kind)
		}
		a.noted[t.Delivery.GetEvent().GetId()] = true
		a.Acks(t.Delivery, t.Append(t.InputRow()))
	}
	for _, word := range words {
		if !strings.Contains(in.Text, word) {
			a.w.T.Fatalf("%s hears the record %q, want %q in it", a.ID, in.Text, word)
		}
	}
	return in
}

// written is the first record that the kernel has written down and that no test
// has asked for yet.
func (a *Agent) written() (in contract.AgentInput, found bool) {
	a.w.T.Helper()
	a.w.Settle()
	for _, e := range a.w.Events(contract.TopicAgentInput + a.ID) {
		in = Decode[contract.AgentInput](a.w.T, e)
		if in.Kind != contract.InputRecord || a.noted[e.GetId()] {
			continue
		}
		a.w.Read(func(r journal.Reader) error {
			ds, err := r.Deliveries(journal.DeliveryFilter{Seq: e.GetSeq()})
			found = len(ds) == 1 && ds[0].State == journal.Done
			return err
		})
		if found {
			a.noted[e.GetId()] = true
			return in, true
		}
	}
	return contract.AgentInput{}, false
}

// HearsNothing says that nothing waits for the agent.
func (a *Agent) HearsNothing() {
	a.w.T.Helper()
	if d := a.Next(); d != nil {
		a.w.T.Fatalf("%s hears %s", a.ID, d.GetEvent().GetPayload())
	}
}

// Session is the session of the turn.
func (t *Turn) Session() int64 { return journal.ParseSessionID(t.Delivery.GetTurn().GetSession()) }

// InputRow is the row of the turn's input.
func (t *Turn) InputRow() *busv1.Entry { return Row(t.Delivery.GetEvent().GetId(), t.Input) }

// Row is the row of an input.
func Row(event string, in contract.AgentInput) *busv1.Entry {
	return &busv1.Entry{
		Kind:          contract.EntryInput,
		Input:         event,
		InputKind:     in.Kind,
		Sender:        in.Sender,
		Text:          in.Text,
		Thread:        in.Thread,
		ForwardedFrom: in.ForwardedFrom,
		Quote:         in.Quote.Row(),
	}
}

// Append is the effect that appends rows where the turn knows the history to
// end.
func (t *Turn) Append(rows ...*busv1.Entry) *busv1.Effect {
	return AppendAt(t.Session(), t.seq, rows...)
}

// AppendAt is the effect that appends rows behind a row.
func AppendAt(session, seq int64, rows ...*busv1.Entry) *busv1.Effect {
	return &busv1.Effect{
		Kind: &busv1.Effect_Append{
			Append: &busv1.Append{Session: journal.SessionID(session), ExpectedSeq: seq, Entries: rows},
		},
	}
}

// Output is the effect that ends the turn.
func (t *Turn) Output(outcome, text string) *busv1.Effect {
	return Publish(
		contract.TopicAgentOutput,
		contract.AgentOutput{Session: t.Delivery.GetTurn().GetSession(), Outcome: outcome, Text: text},
	)
}

// Answers ends the turn with a text.
func (t *Turn) Answers(text string) {
	t.agent.w.T.Helper()
	t.Ends(contract.OutcomeOK, text)
}

// Ends ends the turn.
func (t *Turn) Ends(outcome, text string) {
	t.agent.w.T.Helper()
	rows := []*busv1.Entry{{Kind: contract.EntryAnswer, Text: text}}
	if !t.begun {
		rows = append([]*busv1.Entry{t.InputRow()}, rows...)
	}
	t.agent.Acks(t.Delivery, t.Append(rows...), t.Output(outcome, text))
}

// Asks records an answer of the model that asks for tool calls, each given as
// the tool's full name and its arguments, and returns their ids.
func (t *Turn) Asks(calls ...[2]string) []string {
	t.agent.w.T.Helper()
	ids, err := t.TriesToAsk(calls...)
	if err != nil {
		t.agent.w.T.Fatal(err)
	}
	return ids
}

// TriesToAsk is Asks for a test that expects a refusal.
func (t *Turn) TriesToAsk(calls ...[2]string) (ids []string, err error) {
	answer := &busv1.Entry{Kind: contract.EntryAnswer}
	for i, c := range calls {
		answer.Calls = append(
			answer.Calls,
			&busv1.Call{ProviderId: fmt.Sprintf("p%d", i), Name: c[0], Arguments: []byte(c[1])},
		)
	}
	rows := []*busv1.Entry{answer}
	if !t.begun {
		rows = append([]*busv1.Entry{t.InputRow()}, rows...)
	}
	results, err := t.agent.Commits(t.Delivery.GetToken(), t.Append(rows...))
	if err != nil {
		return nil, err
	}
	t.begun, t.seq = true, results[0].GetSeq()
	for _, c := range results[0].GetCalls() {
		ids = append(ids, c.GetCallId())
	}
	return ids, nil
}

// Call runs a call and returns its result. Time passes if it has to.
func (t *Turn) Call(id string) (*extensionv1.CallResult, error) {
	w := t.agent.w
	l, err := w.Bus.Lease(t.agent.Actor, t.Delivery.GetToken())
	if err != nil {
		return nil, err
	}
	r, err := w.Tools.Call(w.T.Context(), l, id)
	if err == nil {
		t.seq++
	}
	return r, err
}

// Calls is Call in the background: the function returned waits for its result.
func (t *Turn) Calls(id string) func() (*extensionv1.CallResult, error) {
	type outcome struct {
		r   *extensionv1.CallResult
		err error
	}
	done := make(chan outcome, 1)
	w := t.agent.w
	l, err := w.Bus.Lease(t.agent.Actor, t.Delivery.GetToken())
	if err != nil {
		return func() (*extensionv1.CallResult, error) { return nil, err }
	}
	go func() {
		r, err := w.Tools.Call(w.T.Context(), l, id)
		done <- outcome{r, err}
	}()
	w.Settle()
	return func() (*extensionv1.CallResult, error) {
		o := <-done
		if o.err == nil {
			t.seq++
		}
		return o.r, o.err
	}
}

// Uses asks for one call and runs it.
func (t *Turn) Uses(tool string, arguments any) *extensionv1.CallResult {
	t.agent.w.T.Helper()
	b, err := json.Marshal(arguments)
	if err != nil {
		t.agent.w.T.Fatal(err)
	}
	r, err := t.Call(t.Asks([2]string{tool, string(b)})[0])
	if err != nil {
		t.agent.w.T.Fatalf("%s: %v", tool, err)
	}
	return r
}

// Tool gives an extension a tool.
func (w *World) Tool(
	extension string,
	described *extensionv1.Tool,
	call func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error),
) {
	entry := describedTool(w, extension, described)
	w.serving[entry.Name] = call
	w.Know(func(s *directory.Snapshot) { s.Tools = append(s.Tools, entry) })
}
