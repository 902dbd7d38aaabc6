package session_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// employer is an extension that makes sessions and handles what is said there.
func employer(w *kerneltest.World) *kerneltest.Extension {
	return w.Extension(
		bus.Actor{ID: "employer", Effects: []string{"session.ensure", "input", "turn.cancel", "withdraw"}},
		kerneltest.On(contract.TopicAgentOutput),
	)
}

func dismiss(key string) *busv1.Effect {
	return &busv1.Effect{
		Kind: &busv1.Effect_TurnCancel{
			TurnCancel: &busv1.TurnCancel{Agent: "worker", Key: key, Reason: "enough", Waiting: true},
		},
	}
}

func TestAnExtensionLearnsWhatItsSessionsSay(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		x, worker := employer(w), w.Agent("worker")
		x.Must(
			"",
			kerneltest.Ensure("worker", "task:t1:s1:a"),
			kerneltest.Input("worker", "task:t1:s1:a", contract.InputTask, "one"),
		)
		x.Must("", kerneltest.Input("worker", "task:t1:s1:a", contract.InputTask, "two"))
		worker.Hears("one").Answers("done")
		d := x.Take()
		if out := kerneltest.Decode[contract.AgentOutput](
			t,
			d.GetEvent(),
		); out.Extension != "employer" || out.Key != "task:t1:s1:a" || out.Partial != "" ||
			out.Text != "done" {
			t.Errorf("the first output is %+v", out)
		}
		x.Acks(d)
		turn := worker.Hears("two")
		turn.Asks([2]string{"core/list_channels", "{}"}) // an answer without a text
		if _, err := worker.Commits(
			turn.Delivery.GetToken(),
			kerneltest.AppendAt(turn.Session(), 4, &busv1.Entry{Kind: contract.EntryAnswer, Text: "half of it"}),
		); err != nil {
			t.Fatal(err)
		}
		x.Must("", dismiss("task:t1:s1:a"))
		out := kerneltest.Decode[contract.AgentOutput](t, x.Take().GetEvent())
		if out.Outcome != contract.OutcomeCancelled || out.Partial != "half of it" || out.Text != "enough" {
			t.Errorf("the second output is %+v", out)
		}
	})
}

func TestWhatWaitsIsCancelledWithAnAnswer(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		x, worker := employer(w), w.Agent("worker")
		worker.Stops()
		x.Must(
			"",
			kerneltest.Ensure("worker", "task:t1:s1:a"),
			kerneltest.Input("worker", "task:t1:s1:a", contract.InputTask, "one"),
			kerneltest.Input("worker", "task:t1:s1:a", contract.InputTask, "two"),
		)
		x.Must("", dismiss("task:t1:s1:a"))
		for range 2 {
			d := x.Take()
			if out := kerneltest.Decode[contract.AgentOutput](
				t,
				d.GetEvent(),
			); out.Outcome != contract.OutcomeCancelled ||
				out.Key != "task:t1:s1:a" {
				t.Errorf("the output is %+v", out)
			}
			x.Acks(d)
		}
		if d := x.Next(); d != nil {
			t.Errorf("one more output: %s", d.GetEvent().GetPayload())
		}
		worker.Starts()
		worker.HearsNothing()
		x.Must("", kerneltest.Input("worker", "task:t1:s1:a", contract.InputTask, "three"))
		worker.Hears("three").Answers("as before")
	})
}

func TestAnInputIsWithdrawnByWhoQueuedIt(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		x, worker := employer(w), w.Agent("worker")
		worker.Stops()
		in := kerneltest.Input("worker", "k", contract.InputNotice, "never mind")
		in.GetInput().DedupeKey = "n1"
		x.Must("", kerneltest.Ensure("worker", "k"), in)
		withdraw := &busv1.Effect{Kind: &busv1.Effect_Withdraw{Withdraw: &busv1.Withdraw{DedupeKey: "n1"}}}
		other := w.Extension(bus.Actor{ID: "other", Effects: []string{"withdraw"}})
		if r := other.Must("", withdraw); r[0].GetEventId() != "" {
			t.Error("another extension has withdrawn it")
		}
		if r := x.Must("", withdraw); r[0].GetTooLate() || r[0].GetEventId() == "" {
			t.Errorf("withdrawing it: %v", r[0])
		}
		worker.Starts()
		worker.HearsNothing()
	})
}
