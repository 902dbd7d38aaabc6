package session_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

func whenIdle(session string) *busv1.Effect {
	return &busv1.Effect{Kind: &busv1.Effect_SessionIdle{SessionIdle: &busv1.SessionIdle{Session: session}}}
}

// watchman is an extension that asks when sessions are idle.
func watchman(w world) *kerneltest.Extension {
	return w.Extension(
		bus.Actor{ID: "watchman", Effects: []string{"session.ensure", "input", "withdraw"}},
		kerneltest.On(contract.TopicSessionIdle+"watchman"),
	)
}

// hearsIdle says for which session it is told that it is idle.
func hearsIdle(w world, x *kerneltest.Extension, session string) {
	w.T.Helper()
	d := x.Take()
	if got := kerneltest.Decode[contract.SessionIdle](w.T, d.GetEvent()); got.Session != session {
		w.T.Errorf("it is told of %+v, want %s", got, session)
	}
	x.Acks(d)
}

func hearsNothing(w world, x *kerneltest.Extension, when string) {
	w.T.Helper()
	if d := x.Next(); d != nil {
		w.T.Fatalf("%s it is told %s", when, d.GetEvent().GetPayload())
	}
}

func TestWhoAsksIsToldOnceThatASessionIsIdle(t *testing.T) {
	play(t, func(w world) {
		x := watchman(w)
		w.telegram.Says("anna", "one")
		one := w.orchestrator.Hears("one")
		id := journal.SessionID(one.Session())
		x.Must("", whenIdle(id))
		x.Must("", whenIdle(id)) // asking twice is asking once
		hearsNothing(w, x, "while a turn runs")
		w.telegram.Says("anna", "two")
		one.Answers("1")
		hearsNothing(w, x, "while an input waits")
		two := w.orchestrator.Hears("two")
		x.Must("", kerneltest.Input("orchestrator", "chan:telegram:anna", contract.InputRecord, "a record"))
		two.Answers("2")
		hearsIdle(w, x, id)
		hearsNothing(w, x, "once more")
		w.orchestrator.HearsRecord("a record")
		hearsNothing(w, x, "without having asked again")
		x.Must("", whenIdle(id))
		hearsIdle(w, x, id) // it is idle now
	})
}

func TestAWithdrawnInputLeavesASessionIdle(t *testing.T) {
	play(t, func(w world) {
		x := watchman(w)
		w.orchestrator.Stops()
		x.Must("", kerneltest.Ensure("orchestrator", "k"))
		in := kerneltest.Input("orchestrator", "k", contract.InputNotice, "never mind")
		in.GetInput().DedupeKey = "n"
		id := x.Must("", in)[0].GetSession()
		x.Must("", whenIdle(id))
		hearsNothing(w, x, "while a notice waits")
		w.Restart() // which starts the agent, too
		w.orchestrator.Stops()
		x.Must("", &busv1.Effect{Kind: &busv1.Effect_Withdraw{Withdraw: &busv1.Withdraw{DedupeKey: "n"}}})
		hearsIdle(w, x, id)
	})
}

func TestADeletedSessionIsIdleAndHasALastWord(t *testing.T) {
	play(t, func(w world) {
		x := watchman(w)
		employer := employer(w.World)
		made := kerneltest.Ensure("orchestrator", "task:t1")
		id := employer.Must("", made)[0].GetSession()
		x.Must("", whenIdle(id))
		hearsIdle(w, x, id)
		w.Do(func(tx *bus.Tx) error { return w.Sessions.Delete(tx, id) })
		d := employer.Take()
		if out := kerneltest.Decode[contract.AgentOutput](
			w.T,
			d.GetEvent(),
		); out.Outcome != contract.OutcomeCancelled || out.Key != "task:t1" ||
			out.Extension != "employer" {
			t.Errorf("the last word is %+v", out)
		}
		employer.Acks(d)
		if d := employer.Next(); d != nil {
			t.Errorf("a further word: %s", d.GetEvent().GetPayload())
		}
		x.Must("", whenIdle(id)) // one that is gone
		hearsIdle(w, x, id)
	})
}

// Turns of a piece of work are counted by themselves, and bounded, too.
func TestAPieceOfWorkHasItsOwnCountOfTurns(t *testing.T) {
	play(t, func(w world) {
		w.Know(func(s *directory.Snapshot) { s.MaxTurns = 3 })
		x := w.Extension(
			bus.Actor{ID: "employer", Effects: []string{"session.ensure", "input"}},
			kerneltest.On(contract.TopicUserMessage),
		)
		w.telegram.Says("anna", "go")
		cause := x.Take()
		var effects []*busv1.Effect
		for _, key := range []string{"task:a", "task:b"} {
			made := kerneltest.Ensure("orchestrator", key)
			made.GetSessionEnsure().Chain = key
			effects = append(effects, made)
			for range 4 {
				effects = append(effects, kerneltest.Input("orchestrator", key, contract.InputTask, "do it"))
			}
		}
		x.Acks(cause, effects...)
		for d := w.orchestrator.Next(); d != nil; d = w.orchestrator.Next() {
			in := kerneltest.Decode[contract.AgentInput](t, d.GetEvent())
			w.orchestrator.Acks(
				d,
				kerneltest.AppendAt(
					journal.ParseSessionID(in.Session),
					d.GetTurn().GetHistorySeq(),
					kerneltest.Row(d.GetEvent().GetId(), in),
				),
				kerneltest.Publish(
					contract.TopicAgentOutput,
					contract.AgentOutput{Session: in.Session, Outcome: contract.OutcomeOK, Text: "done"},
				),
			)
		}
		outcomes := map[string]int{}
		for _, out := range w.outputs() {
			outcomes[out.Outcome]++
		}
		if outcomes[contract.OutcomeOK] != 1+3+3 || outcomes[contract.OutcomeCapped] != 2 {
			t.Errorf("%v, want the turn of the message and 3 of each task, and the fourth of each stopped", outcomes)
		}
	})
}

func TestASessionWithinAGroupIsReadByTheGroup(t *testing.T) {
	play(t, func(w world) {
		x := employer(w.World)
		w.telegram.Reports(contract.UserMessage{Text: "hello", UserID: "anna", ConversationID: "group", Group: true})
		turn := w.orchestrator.HearsNext()
		made := kerneltest.Ensure("orchestrator", "task:a")
		made.GetSessionEnsure().Within = journal.SessionID(turn.Session())
		x.Must("", made, kerneltest.Ensure("orchestrator", "task:b"))
		if !w.Session("orchestrator", "task:a").Group || w.Session("orchestrator", "task:b").Group {
			t.Error("the session within the group is not read by it, or the other one is")
		}
		made.GetSessionEnsure().Key, made.GetSessionEnsure().Within = "task:c", "s999"
		if _, err := x.Commits("", made); err == nil {
			t.Error("a session is made within one that does not exist")
		}
	})
}
