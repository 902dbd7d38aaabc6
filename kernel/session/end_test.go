package session_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

func TestTheEndOfATurnClosesItsCalls(t *testing.T) {
	play(t, func(w world) {
		w.telegram.Says("anna", "hello")
		turn := w.orchestrator.Hears("hello")
		calls := turn.Asks([2]string{"core/list_channels", "{}"}, [2]string{"core/list_agents", "{}"})
		if _, err := turn.Call(calls[0]); err != nil {
			t.Fatal(err)
		}
		turn.Ends(contract.OutcomeTimeout, "It took too long.")
		if c := w.call(calls[0]); c.State != journal.CallFinished {
			t.Errorf("the first call is %+v", c)
		}
		if c := w.call(calls[1]); c.State != journal.CallClosed || c.EndedAt == 0 {
			t.Errorf("the second call is %+v", c)
		}
		rows := w.History(turn.Session())
		if last := rows[len(rows)-1]; !strings.HasPrefix(last, "result: cancelled") || !strings.Contains(last, "unknown") {
			t.Errorf("the history is %q", rows)
		}
		err := w.Bus.Do(func(tx *bus.Tx) error { return w.Sessions.Finish(tx, journal.ParseCallID(calls[1]), "late", false) })
		if !errors.Is(err, contract.ErrStale) {
			t.Errorf("a closed call took a result: %v", err)
		}
		if after := w.History(turn.Session()); len(after) != len(rows) {
			t.Errorf("the history is %q", after)
		}
	})
}

func TestADeadTurnIsAnswered(t *testing.T) {
	play(t, func(w world) {
		w.telegram.Says("anna", "hello")
		for i := range 3 {
			turn := w.orchestrator.Hears("hello")
			if i == 0 {
				turn.Asks([2]string{"core/list_channels", "{}"})
			}
			w.orchestrator.Fails(turn.Delivery, "it does not work")
			w.Wait(2 * time.Minute)
		}
		w.telegram.ShowsOne("I couldn't answer that", "it does not work")
		if got := w.outputs(); len(got) != 1 || got[0].Outcome != contract.OutcomeDead {
			t.Errorf("outputs: %+v", got)
		}
		if s := w.Session("orchestrator", "chan:telegram:anna"); len(s.Stack) != 0 {
			t.Errorf("the session is %+v", s)
		}
		epoch := int64(0)
		w.telegram.Says("anna", "and now?")
		turn := w.orchestrator.Hears("and now?")
		if epoch = turn.Delivery.GetTurn().GetHistoryEpoch(); epoch == 0 {
			t.Error("the agent is not told that the kernel wrote to the history")
		}
		turn.Answers("fine")
		w.telegram.Shows("anna: fine")
	})
}

func TestATurnThatDiedBeforeItBeganIsKept(t *testing.T) {
	play(t, func(w world) {
		w.telegram.Says("anna", "hello")
		turn := w.orchestrator.Hears("hello")
		w.orchestrator.Drops(turn.Delivery, "it is poison")
		w.telegram.ShowsOne("I couldn't answer that", "it is poison")
		if rows := w.History(turn.Session()); !slices.Equal(rows, []string{"input: hello"}) {
			t.Errorf("the history is %q", rows)
		}
		if n, err := w.Bus.Resubmit(turn.Delivery.GetEvent().GetId()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		w.orchestrator.Hears("hello").Answers("no poison")
		w.telegram.Shows("anna: no poison")
	})
}

func TestADeadRecordSaysNothing(t *testing.T) {
	play(t, func(w world) {
		message := w.telegram.Says("anna", "hello")
		hello := w.orchestrator.Hears("hello")
		w.telegram.Edits("anna", message, "hello!")
		hello.Answers("")
		w.orchestrator.Drops(w.orchestrator.HearsNext().Delivery, "no")
		w.telegram.IsSilent()
		if dead := w.Dead(contract.TopicAgentInput + "orchestrator"); len(dead) != 1 {
			t.Errorf("dead letters: %q", dead)
		}
	})
}

func TestCancellingTakesTheLaneFromItsHolder(t *testing.T) {
	play(t, func(w world) {
		tasks := w.Extension(
			bus.Actor{ID: "tasks", Effects: []string{"turn.cancel"}},
			kerneltest.On(contract.TopicAgentOutput),
		)
		w.telegram.Says("anna", "work")
		turn := w.orchestrator.Hears("work")
		call := turn.Asks([2]string{"core/list_channels", "{}"})[0]
		w.telegram.Says("anna", "more")
		tasks.Must("", kerneltest.CancelTurn(turn.Session(), "It is cancelled."))
		out := kerneltest.Decode[contract.AgentOutput](t, tasks.Take().GetEvent())
		if out.Outcome != contract.OutcomeCancelled || out.Text != "It is cancelled." {
			t.Errorf("the output is %+v", out)
		}
		w.telegram.Shows("anna: It is cancelled.")
		if _, err := turn.TriesToAsk([2]string{"core/list_channels", "{}"}); !errors.Is(err, contract.ErrStale) {
			t.Errorf("the holder goes on: %v", err)
		}
		if _, err := turn.Call(call); !errors.Is(err, contract.ErrStale) {
			t.Errorf("the holder calls a tool: %v", err)
		}
		turn.Answers("too late")
		w.orchestrator.Fails(turn.Delivery, "too late")
		w.orchestrator.Hears("more").Answers("more")
		w.telegram.Shows("anna: more")
		if _, err := tasks.Commits("", kerneltest.CancelTurn(99, "")); err != nil {
			t.Errorf("nothing is to end where there is no session: %v", err)
		}
	})
}

// A cancellation is one effect of a commit: if that fails, nothing has happened.
func TestACancellationThatIsRolledBackLeavesTheTurnAlone(t *testing.T) {
	play(t, func(w world) {
		tasks := w.Extension(bus.Actor{ID: "tasks", Effects: []string{"turn.cancel"}})
		w.telegram.Says("anna", "work")
		turn := w.orchestrator.Hears("work")
		turn.Asks([2]string{"core/list_channels", "{}"})
		if _, err := tasks.Commits(
			"",
			kerneltest.CancelTurn(turn.Session(), "no"),
			kerneltest.PutAt("k", "v", 7),
		); !errors.Is(
			err,
			contract.ErrConflict,
		) {
			t.Fatalf("the commit: %v", err)
		}
		if w.orchestrator.Cancelled(turn.Delivery.GetToken()) {
			t.Error("the holder was told to end")
		}
		turn.Answers("done")
		w.telegram.Shows("anna: done")
	})
}

// What the holder says while such a commit is being applied is not lost.
func TestAnAnswerDuringACancellationThatIsRolledBackCounts(t *testing.T) {
	for name, o := range map[string]*busv1.Outcome{
		"an acknowledgement": {Kind: busv1.Outcome_KIND_ACK},
		"a retry":            {Kind: busv1.Outcome_KIND_RETRY},
		"a late retry":       {Kind: busv1.Outcome_KIND_RETRY, RetryAfterMs: 5000},
		"a failure":          {Kind: busv1.Outcome_KIND_FAIL},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w world) {
				w.telegram.Says("anna", "work")
				turn := w.orchestrator.Hears("work")
				o.Token = turn.Delivery.GetToken()
				if o.Kind == busv1.Outcome_KIND_ACK {
					o.Effects = []*busv1.Effect{turn.Append(turn.InputRow()), turn.Output(contract.OutcomeOK, "done")}
				}
				err := w.Bus.Do(func(tx *bus.Tx) error {
					s, err := tx.Session(turn.Session())
					if err != nil {
						return err
					}
					if _, err := w.Sessions.CancelTurns(tx, s, "no"); err != nil {
						return err
					}
					w.Bus.Outcome(w.orchestrator.Actor, o)
					return contract.ErrConflict
				})
				if !errors.Is(err, contract.ErrConflict) {
					t.Fatal(err)
				}
				w.Wait(10 * time.Second)
				if o.Kind != busv1.Outcome_KIND_ACK {
					w.orchestrator.Hears("work").Answers("done")
				}
				w.telegram.Shows("anna: done")
				w.orchestrator.HearsNothing()
			})
		})
	}
}

func TestATurnDoesNotCancelItself(t *testing.T) {
	play(t, func(w world) {
		w.orchestrator.Actor.Effects = []string{"turn.cancel"}
		w.telegram.Says("anna", "work")
		turn := w.orchestrator.Hears("work")
		if _, err := w.orchestrator.Commits(
			turn.Delivery.GetToken(),
			kerneltest.CancelTurn(turn.Session(), "no"),
		); !errors.Is(
			err,
			contract.ErrDenied,
		) {
			t.Errorf("a turn cancels itself: %v", err)
		}
		turn.Answers("done")
		w.telegram.Shows("anna: done")
	})
}

func TestASessionIsDeletedWithWhatRunsInIt(t *testing.T) {
	play(t, func(w world) {
		message := w.telegram.Says("anna", "work")
		turn := w.orchestrator.Hears("work")
		turn.Asks([2]string{"core/list_channels", "{}"})
		w.telegram.Says("anna", "more")
		w.Do(func(tx *bus.Tx) error { return w.Sessions.Delete(tx, journal.SessionID(turn.Session())) })
		w.orchestrator.HearsNothing()
		turn.Answers("too late")
		w.telegram.IsSilent()
		w.telegram.Says("anna", "afresh")
		again := w.orchestrator.Hears("afresh")
		if again.Session() == turn.Session() || again.Delivery.GetTurn().GetHistorySeq() != 0 {
			t.Errorf("the session %d goes on", turn.Session())
		}
		w.telegram.Edits("anna", message, "a record in somebody's hands")
		again.Answers("hi")
		w.telegram.Shows("anna: hi")

		record := w.orchestrator.HearsNext()
		w.Do(func(tx *bus.Tx) error { return w.Sessions.Delete(tx, journal.SessionID(record.Session())) })
		w.orchestrator.Acks(record.Delivery, record.Append(record.InputRow()))
		w.telegram.Says("anna", "and again")
		w.orchestrator.Hears("and again").Answers("hi again")
		w.telegram.Shows("anna: hi again")
		if err := w.Bus.Do(
			func(tx *bus.Tx) error { return w.Sessions.Delete(tx, journal.SessionID(record.Session())) },
		); !errors.Is(
			err,
			contract.ErrNotFound,
		) {
			t.Errorf("deleted twice: %v", err)
		}
	})
}

// An agent that is taken away for more than a day leaves nothing behind that
// its next message could be taken for.
func TestTheTurnsOfAnAgentThatIsGoneAreEnded(t *testing.T) {
	play(t, func(w world) {
		w.telegram.Says("anna", "work")
		w.orchestrator.Hears("work").Asks([2]string{"core/list_channels", "{}"})
		w.telegram.Says("anna", "more")
		w.orchestrator.Stops()
		if err := w.Bus.Subscribe("orchestrator", nil); err != nil {
			t.Fatal(err)
		}
		w.Wait(26 * time.Hour)
		w.telegram.Shows("anna: I couldn't answer that: orchestrator did not run for more than 24h0m0s. Please try again.",
			"anna: I couldn't answer that: orchestrator did not run for more than 24h0m0s. Please try again.")
		if s := w.Session("orchestrator", "chan:telegram:anna"); len(s.Stack) != 0 {
			t.Errorf("the session is %+v", s)
		}
		if err := w.Bus.Subscribe("orchestrator", []bus.Subscription{{
			Pattern: contract.TopicAgentInput + "orchestrator", Ordered: true, AckWait: 10 * time.Minute, MaxDeliver: 3,
		}}); err != nil {
			t.Fatal(err)
		}
		w.orchestrator.Starts()
		w.orchestrator.HearsNothing()
		w.telegram.Says("anna", "again")
		turn := w.orchestrator.Hears("again")
		if turn.Delivery.GetTurn().GetResumed() {
			t.Error("a message is taken for a turn that was begun a day ago")
		}
		turn.Answers("yes")
		w.telegram.Shows("anna: yes")
	})
}

// A run loop that disagrees with the kernel for good comes to an end: each of its
// attempts asks a model anew.
func TestATurnThatAlwaysConflictsIsGivenUp(t *testing.T) {
	play(t, func(w world) {
		w.telegram.Says("anna", "hello")
		attempts := 0
		for d := w.orchestrator.Next(); d != nil; d = w.orchestrator.Next() {
			if attempts++; attempts > 50 {
				t.Fatal("it never ends")
			}
			session := journal.ParseSessionID(d.GetTurn().GetSession())
			in := kerneltest.Decode[contract.AgentInput](t, d.GetEvent())
			w.orchestrator.Acks(
				d,
				kerneltest.AppendAt(session, 99, kerneltest.Row(d.GetEvent().GetId(), in)),
				kerneltest.Publish(
					contract.TopicAgentOutput,
					contract.AgentOutput{Session: d.GetTurn().GetSession(), Outcome: contract.OutcomeOK, Text: "hi"},
				),
			)
			w.Wait(5 * time.Minute)
		}
		if attempts > 8 {
			t.Errorf("%d attempts", attempts)
		}
		w.telegram.ShowsOne("I couldn't answer that", "conflicts in a row")
	})
}
