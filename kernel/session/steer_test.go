package session_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// working is a turn about "first" with two calls, the first of which has run.
func (w world) working() *kerneltest.Turn {
	w.T.Helper()
	w.telegram.Says("anna", "first")
	turn := w.orchestrator.Hears("first")
	calls := turn.Asks([2]string{"core/list_channels", "{}"}, [2]string{"core/list_agents", "{}"})
	if _, err := turn.Call(calls[0]); err != nil {
		w.T.Fatal(err)
	}
	return turn
}

func (w world) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

func TestNewerMessagesInterruptATurnThatGoesOnAfterwards(t *testing.T) {
	play(t, func(w world) {
		turn := w.working()
		below := turn.Delivery.GetTurn().GetTurn()
		w.telegram.Says("anna", "second")
		w.telegram.Says("anna", "third")
		w.must(turn.Steers(2, 1))
		c := turn.Delivery.GetTurn()
		if c.GetTurn() == below || c.GetBelow() == 0 || !c.GetResumed() {
			t.Errorf("the new turn is %v", c)
		}
		w.must(turn.AnswersAbove("to both"))
		if c := turn.Delivery.GetTurn(); c.GetBelow() != 0 || c.GetInterruptions() != 1 {
			t.Errorf("the turn that goes on is %v", c)
		}
		w.telegram.Shows("anna: to both")
		turn.Asks([2]string{"core/list_agents", "{}"})
		turn.Answers("to the first")
		w.telegram.Shows("anna: to the first")
		w.orchestrator.HearsNothing()
		want := []string{
			"input: first",
			"answer: ",
			"result: ",
			"result: " + contract.SkippedCall,
			"input: second",
			"input: third",
			"answer: to both",
			"answer: ",
			"answer: to the first",
			"result: cancelled",
		}
		rows := w.History(turn.Session())
		for i, row := range rows {
			if i >= len(want) || !strings.HasPrefix(row, want[i]) {
				t.Fatalf("the history is %q, want %q", rows, want)
			}
		}
		outputs := w.outputs()
		if len(outputs) != 2 || outputs[0].Turn == outputs[1].Turn {
			t.Errorf("outputs: %+v", outputs)
		}
		if s := w.Session("orchestrator", "chan:telegram:anna"); len(s.Stack) != 0 || s.UserAt == 0 {
			t.Errorf("the session is %+v", s)
		}
		for _, e := range w.Events(contract.TopicAgentOutput) {
			out := kerneltest.Decode[contract.AgentOutput](t, e)
			if about := journal.EventID(w.turn(out.Turn).Inputs[0]); e.GetCausationId() != about {
				t.Errorf("the output %q follows from %s, want %s", out.Text, e.GetCausationId(), about)
			}
		}
	})
}

func TestWhatMayNotInterruptATurn(t *testing.T) {
	play(t, func(w world) {
		tasks := w.Extension(bus.Actor{ID: "tasks", Effects: []string{"input"}})
		turn := w.working()
		if err := turn.SteersWith(nil, 1); !errors.Is(err, contract.ErrConflict) {
			t.Errorf("nothing: %v", err)
		}
		tasks.Must("", kerneltest.Input("orchestrator", "chan:telegram:anna", contract.InputNotice, "notice"))
		notice := turn.Waiting()[0]
		if err := turn.SteersWith([]string{notice.GetId()}, 1); !errors.Is(err, contract.ErrConflict) {
			t.Errorf("an internal input: %v", err)
		}
		w.telegram.Says("anna", "second")
		w.Do(func(tx *bus.Tx) error { // another place to be answered at
			s, err := tx.Session(turn.Session())
			if err == nil {
				err = w.Sessions.Queue(tx, s, contract.AgentInput{
					Kind: contract.InputUser, Text: "elsewhere", ReplyTo: "another",
				})
			}
			if err == nil {
				err = w.Sessions.Queue(tx, s, contract.AgentInput{
					Kind: contract.InputUser, Text: "of boris", ReplyTo: turn.Input.ReplyTo, Person: "boris",
				})
			}
			return err
		})
		w.telegram.Says("anna", "third")
		w.Settle()
		waiting := turn.Waiting()
		if len(waiting) != 5 {
			t.Fatalf("%d inputs wait", len(waiting))
		}
		second, elsewhere, boris, third := waiting[1].GetId(), waiting[2].GetId(), waiting[3].GetId(), waiting[4].GetId()
		for name, inputs := range map[string][]string{
			"one behind the first":      {third},
			"out of order":              {third, second},
			"two reply targets":         {second, elsewhere},
			"two people":                {second, boris},
			"one that is handled":       {turn.Delivery.GetEvent().GetId()},
			"something that is unknown": {"e999999"},
		} {
			if err := turn.SteersWith(inputs, 1); !errors.Is(err, contract.ErrConflict) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if rows := w.History(turn.Session()); slices.Contains(rows, "result: "+contract.SkippedCall) {
			t.Errorf("a refused interruption left its mark: %q", rows)
		}
		w.must(turn.SteersWith([]string{second, third}, 1,
			kerneltest.Row(second, contract.AgentInput{Kind: contract.InputUser, Text: "second"}),
			kerneltest.Row(third, contract.AgentInput{Kind: contract.InputUser, Text: "third"})))
		w.must(turn.AnswersAbove("to both"))
		turn.Answers("to the first")
		w.telegram.Shows("anna: to both", "anna: to the first")
		w.orchestrator.Hears("notice").Answers("")
		w.orchestrator.Hears("elsewhere").Answers("")
		w.orchestrator.Hears("of boris").Answers("")
	})
}

func TestATurnIsInterruptedThreeTimesAtMost(t *testing.T) {
	play(t, func(w world) {
		turn := w.working()
		for i := range contract.MaxInterruptions {
			w.telegram.Says("anna", "again")
			w.must(turn.Steers(1, max(0, 1-i)))
			w.must(turn.AnswersAbove("yes"))
		}
		w.telegram.Says("anna", "once more")
		if err := turn.Steers(1, 0); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("it is interrupted once more: %v", err)
		}
		turn.Answers("at last")
		w.telegram.Shows("anna: yes", "anna: yes", "anna: yes", "anna: at last")
		w.orchestrator.Hears("once more").Answers("here")
		w.telegram.Shows("anna: here")
	})
}

func TestATurnThatInterruptedAnotherIsInterruptedItself(t *testing.T) {
	play(t, func(w world) {
		turn := w.working()
		w.telegram.Says("anna", "second")
		w.must(turn.Steers(1, 1))
		turn.Asks([2]string{"core/list_agents", "{}"})
		w.telegram.Says("anna", "third")
		w.must(turn.Steers(1, 1))
		w.must(turn.AnswersAbove("third"))
		w.must(turn.AnswersAbove("second"))
		turn.Answers("first")
		w.telegram.Shows("anna: third", "anna: second", "anna: first")
		w.orchestrator.HearsNothing()
	})
}

// A message that interrupts a turn holds up those below that, too.
func TestTheLowestTurnIsNotHeldUpForEver(t *testing.T) {
	play(t, func(w world) {
		turn := w.working()
		for i := range contract.MaxInterruptions {
			w.telegram.Says("anna", "again")
			w.must(turn.Steers(1, 1))
			if i < contract.MaxInterruptions-1 {
				turn.Asks([2]string{"core/list_agents", "{}"})
			}
		}
		w.telegram.Says("anna", "once more")
		if c := turn.Delivery.GetTurn(); c.GetInterruptions() != contract.MaxInterruptions {
			t.Errorf("the run loop is told %v", c)
		}
		if err := turn.Steers(1, 0); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("they are interrupted once more: %v", err)
		}
		for range contract.MaxInterruptions {
			w.must(turn.AnswersAbove("yes"))
		}
		turn.Answers("at last")
		w.telegram.Shows("anna: yes", "anna: yes", "anna: yes", "anna: at last")
		w.orchestrator.Hears("once more").Answers("here")
		w.telegram.Shows("anna: here")
	})
}

// A message that the run loop is not shown yet would end each call anew.
func TestAMessageBehindManyInputsEndsNoCall(t *testing.T) {
	play(t, func(w world) {
		w.waiter(&extensionv1.Tool{Name: "wait", Interruptible: true})
		tasks := w.Extension(bus.Actor{ID: "tasks", Effects: []string{"input"}})
		w.telegram.Says("anna", "first")
		turn := w.orchestrator.Hears("first")
		for range session.MaxPending {
			tasks.Must("", kerneltest.Input("orchestrator", "chan:telegram:anna", contract.InputNotice, "notice"))
		}
		done := turn.Calls(turn.Asks([2]string{"box/wait", "{}"})[0])
		w.telegram.Says("anna", "second")
		w.Wait(time.Minute)
		id := journal.ParseCallID("c1")
		if c := w.call(journal.CallID(id)); c == nil || c.State != journal.CallRunning {
			t.Errorf("the call is %+v", c)
		}
		w.telegram.Says("anna", "/stop")
		if _, err := done(); !errors.Is(err, contract.ErrStale) {
			t.Errorf("the call ends with %v", err)
		}
	})
}

// The lane is given out again with the same turn on top, whoever died.
func TestInterruptedTurnsSurvive(t *testing.T) {
	for name, kill := range map[string]func(w world){
		"the agent":  func(w world) { w.orchestrator.Dies(); w.orchestrator.Starts() },
		"the kernel": func(w world) { w.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w world) {
				turn := w.working()
				w.telegram.Says("anna", "second")
				w.must(turn.Steers(1, 1))
				top := turn.Delivery.GetTurn()
				kill(w)
				w.Wait(time.Minute)
				turn = w.orchestrator.Hears("first")
				c := turn.Delivery.GetTurn()
				if c.GetTurn() != top.GetTurn() || c.GetBelow() != top.GetBelow() || !c.GetResumed() || c.GetHistorySeq() != 5 {
					t.Errorf("it is given out again as %v, was %v", c, top)
				}
				if len(turn.Waiting()) != 0 {
					t.Errorf("what the turn is about waits: %v", turn.Waiting())
				}
				w.must(turn.AnswersAbove("to the second"))
				kill(w)
				w.Wait(time.Minute)
				turn = w.orchestrator.Hears("first")
				if c := turn.Delivery.GetTurn(); c.GetTurn() != top.GetBelow() || c.GetBelow() != 0 || c.GetInterruptions() != 1 {
					t.Errorf("the turn below is given out again as %v", c)
				}
				turn.Answers("to the first")
				mark := ""
				if name == "the kernel" { // it died before the channel said that it had shown it
					mark = contract.RepeatMark
				}
				w.telegram.Shows("anna: "+mark+"to the second", "anna: to the first")
				w.orchestrator.HearsNothing()
			})
		})
	}
}

func TestAnAcknowledgementDoesNotLoseTheTurnBelow(t *testing.T) {
	play(t, func(w world) {
		turn := w.working()
		w.telegram.Says("anna", "second")
		w.must(turn.Steers(1, 1))
		w.orchestrator.Acks(turn.Delivery, turn.Output(contract.OutcomeOK, "both at once"))
		// The agent is wrong, for good: the delivery dies, and both are answered for.
		w.telegram.Shows(
			"anna: I couldn't answer that: "+w.Dead(contract.TopicAgentInput + "orchestrator")[0]+". Please try again.",
			"anna: I couldn't answer that: "+w.Dead(contract.TopicAgentInput + "orchestrator")[0]+". Please try again.",
		)
		if got := w.outputs(); len(got) != 2 || got[0].Outcome != contract.OutcomeDead ||
			got[1].Outcome != contract.OutcomeDead {
			t.Errorf("outputs: %+v", got)
		}
		if s := w.Session("orchestrator", "chan:telegram:anna"); len(s.Stack) != 0 {
			t.Errorf("the session is %+v", s)
		}
		w.orchestrator.HearsNothing()
	})
}

func TestStopOfTheAnswerEndsInterruptedTurnsAndKeepsWhatWaits(t *testing.T) {
	play(t, func(w world) {
		turn := w.working()
		w.telegram.Says("anna", "second")
		w.must(turn.Steers(1, 1))
		w.telegram.Says("anna", "third")
		w.telegram.Says("anna", "/stop answer")
		w.telegram.Shows("anna: Stopped.")
		if err := turn.AnswersAbove("too late"); !errors.Is(err, contract.ErrStale) {
			t.Errorf("a stopped turn goes on: %v", err)
		}
		if got := w.outputs(); len(got) != 2 || got[0].Outcome != contract.OutcomeCancelled ||
			got[1].Outcome != contract.OutcomeCancelled {
			t.Errorf("outputs: %+v", got)
		}
		w.orchestrator.Hears("third").Answers("yes?")
		w.telegram.Shows("anna: yes?")
		w.orchestrator.HearsNothing()
	})
}

func TestAnInputOfARunningTurnIsNotWithdrawn(t *testing.T) {
	play(t, func(w world) {
		turn := w.working()
		w.telegram.Says("anna", "second")
		waiting := turn.Waiting()[0]
		w.must(turn.Steers(1, 1))
		var inTime bool
		w.Do(func(tx *bus.Tx) (err error) { inTime, err = tx.Withdraw(waiting); return err })
		if inTime {
			t.Error("it was withdrawn")
		}
		w.must(turn.AnswersAbove("second"))
		turn.Answers("first")
		w.telegram.Shows("anna: second", "anna: first")
	})
}

// waiter gives the agent a tool that waits until its context ends.
func (w world) waiter(t *extensionv1.Tool) {
	w.Extension(bus.Actor{ID: "box"})
	w.Tool("box", t, func(ctx context.Context, _ *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
}

func TestANewMessageEndsACallThatWaits(t *testing.T) {
	play(t, func(w world) {
		w.waiter(&extensionv1.Tool{Name: "wait", Interruptible: true})
		w.telegram.Says("anna", "first")
		turn := w.orchestrator.Hears("first")
		done := turn.Calls(turn.Asks([2]string{"box/wait", "{}"})[0])
		// Far beyond the time of a turn: that stands still meanwhile.
		w.Wait(2 * time.Hour)
		if w.orchestrator.Cancelled(turn.Delivery.GetToken()) {
			t.Fatal("the turn's time went on while a call waited")
		}
		w.telegram.Says("anna", "second")
		r, err := done()
		if err != nil || !r.GetIsError() || !strings.HasPrefix(r.GetContent(), "interrupted") {
			t.Fatalf("the call ends with %v, %v", r, err)
		}
		w.must(turn.Steers(1, 0))
		w.must(turn.AnswersAbove("second"))
		w.Wait(9 * time.Minute)
		if w.orchestrator.Cancelled(turn.Delivery.GetToken()) {
			t.Error("the time of the turn that goes on did not begin anew")
		}
		w.Wait(2 * time.Minute)
		if !w.orchestrator.Cancelled(turn.Delivery.GetToken()) {
			t.Error("the time of a turn has no end")
		}
		turn.Ends(contract.OutcomeTimeout, "too late")
		w.telegram.Shows("anna: second", "anna: too late")
	})
}

func TestAMessageThatWaitsAlreadyEndsACallThatWaits(t *testing.T) {
	play(t, func(w world) {
		w.waiter(&extensionv1.Tool{Name: "wait", Interruptible: true})
		w.telegram.Says("anna", "first")
		turn := w.orchestrator.Hears("first")
		call := turn.Asks([2]string{"box/wait", "{}"})[0]
		w.telegram.Says("anna", "second")
		if r, err := turn.Call(call); err != nil || !strings.HasPrefix(r.GetContent(), "interrupted") {
			t.Fatalf("the call ends with %v, %v", r, err)
		}
		w.must(turn.Steers(1, 0))
		w.must(turn.AnswersAbove("second"))
		turn.Answers("first")
		w.telegram.Shows("anna: second", "anna: first")
	})
}

func TestATurnIsNotInterruptedWhileACallRuns(t *testing.T) {
	play(t, func(w world) {
		w.waiter(&extensionv1.Tool{Name: "work"})
		w.telegram.Says("anna", "first")
		turn := w.orchestrator.Hears("first")
		calls := turn.Asks([2]string{"box/work", "{}"}, [2]string{"core/list_agents", "{}"})
		turn.Calls(calls[0])
		w.telegram.Says("anna", "second")
		if err := turn.Steers(1, 2); !errors.Is(err, contract.ErrConflict) {
			t.Errorf("a running call is lost: %v", err)
		}
		if c := w.call(calls[1]); c.State != journal.CallOpen {
			t.Errorf("the other call is %+v", c)
		}
		w.telegram.Says("anna", "/stop answer")
		w.telegram.Shows("anna: Stopped.")
		w.orchestrator.Hears("second").Answers("fine")
		w.telegram.Shows("anna: fine")
	})
}

// A call that may be repeated is not marked in the store while it runs; it is not
// taken for one that has not begun all the same.
func TestARunningCallThatMayBeRepeatedIsNotSkipped(t *testing.T) {
	play(t, func(w world) {
		w.waiter(&extensionv1.Tool{Name: "look", ReadOnly: true})
		w.telegram.Says("anna", "first")
		turn := w.orchestrator.Hears("first")
		call := turn.Asks([2]string{"box/look", "{}"})[0]
		turn.Calls(call)
		w.telegram.Says("anna", "second")
		if err := turn.Steers(1, 1); !errors.Is(err, contract.ErrConflict) {
			t.Errorf("a running call is said not to have run: %v", err)
		}
		if c := w.call(call); c.State != journal.CallOpen {
			t.Errorf("the call is %+v", c)
		}
		w.telegram.Says("anna", "/stop answer")
		w.telegram.Shows("anna: Stopped.")
		w.orchestrator.Hears("second").Answers("fine")
		w.telegram.Shows("anna: fine")
	})
}
