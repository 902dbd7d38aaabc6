package kerneltest

import (
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Waiting is the inputs of the turn's session that no turn is about yet.
func (t *Turn) Waiting() (inputs []*busv1.Event) {
	w := t.agent.w
	w.T.Helper()
	l, err := w.Bus.Lease(t.agent.Actor, t.Delivery.GetToken())
	if err != nil {
		w.T.Fatal(err)
	}
	w.Read(func(r journal.Reader) (err error) {
		inputs, err = w.Sessions.Pending(r, w.Bus, l)
		return err
	})
	return inputs
}

// Steers lets the first n waiting messages of users interrupt the turn, whose
// calls without a result are skipped. The turn is then the one about them.
func (t *Turn) Steers(n, skipped int) error {
	t.agent.w.T.Helper()
	var inputs []string
	var rows []*busv1.Entry
	for _, e := range t.Waiting() {
		in := Decode[contract.AgentInput](t.agent.w.T, e)
		if in.Kind == contract.InputUser && len(inputs) < n {
			row := Row(e.GetId(), in)
			row.Backlog = true
			inputs, rows = append(inputs, e.GetId()), append(rows, row)
		}
	}
	return t.SteersWith(inputs, skipped, rows...)
}

// SteersWith is Steers with inputs by name.
func (t *Turn) SteersWith(inputs []string, skipped int, rows ...*busv1.Entry) error {
	results, err := t.agent.Commits(
		t.Delivery.GetToken(),
		&busv1.Effect{
			Kind: &busv1.Effect_Steer{Steer: &busv1.Steer{Session: journal.SessionID(t.Session()), Inputs: inputs}},
		},
		AppendAt(t.Session(), t.seq+int64(skipped), rows...),
	)
	if err != nil {
		return err
	}
	t.Delivery.Turn, t.seq = results[0].GetTurn(), results[1].GetSeq()
	return nil
}

// AnswersAbove ends a turn that has interrupted another, which the turn is then.
func (t *Turn) AnswersAbove(text string) error {
	results, err := t.agent.Commits(t.Delivery.GetToken(),
		t.Append(&busv1.Entry{Kind: contract.EntryAnswer, Text: text}), t.Output(contract.OutcomeOK, text))
	if err != nil {
		return err
	}
	c := results[1].GetTurn()
	if c == nil {
		return fmt.Errorf("the kernel does not say which turn goes on: %v", results)
	}
	t.Delivery.Turn, t.seq = c, c.GetHistorySeq()
	return nil
}
