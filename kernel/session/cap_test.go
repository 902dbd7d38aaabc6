package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// Two sessions that answer each other, as links would without an end.
func TestTurnsThatLeadToTurnsComeToAnEnd(t *testing.T) {
	play(t, func(w world) {
		w.Know(func(s *directory.Snapshot) { s.MaxTurns = 7 })
		mirror := w.Extension(
			bus.Actor{ID: "mirror", Effects: []string{"session.ensure", "input"}},
			kerneltest.On(contract.TopicAgentOutput),
		)
		mirror.Must("", kerneltest.Ensure("orchestrator", "link:a"), kerneltest.Ensure("orchestrator", "link:b"))
		w.telegram.Says("anna", "talk to each other")
		turns, handled := 0, 0
		for i := range 1000 {
			if d := w.orchestrator.Next(); d != nil {
				turns++
				in := kerneltest.Decode[contract.AgentInput](t, d.GetEvent())
				session := d.GetTurn().GetSession()
				w.orchestrator.Acks(
					d,
					&busv1.Effect{Kind: &busv1.Effect_Append{Append: &busv1.Append{
						Session:     session,
						ExpectedSeq: d.GetTurn().GetHistorySeq(),
						Entries:     []*busv1.Entry{kerneltest.Row(d.GetEvent().GetId(), in)},
					}}},
					kerneltest.Publish(
						contract.TopicAgentOutput,
						contract.AgentOutput{Session: session, Outcome: contract.OutcomeOK, Text: ""},
					),
				)
				continue
			}
			d := mirror.Next()
			if d == nil {
				break
			}
			handled++
			mirror.Acks(
				d,
				kerneltest.Input("orchestrator", []string{"link:a", "link:b"}[i%2], contract.InputMessage, "thank you"),
			)
		}
		w.Wait(time.Hour)
		if mirror.Next() != nil || w.orchestrator.Next() != nil {
			t.Fatal("it does not end")
		}
		if turns != 7 {
			t.Errorf("a model was asked %d times, want 7", turns)
		}
		if handled > 7+contract.MaxHops {
			t.Errorf("%d outputs were handled", handled)
		}
		w.telegram.ShowsOne("I stopped here")
		w.orchestrator.HearsRecord("I stopped here")
		for _, out := range w.outputs()[7:] {
			if out.Outcome != contract.OutcomeCapped {
				t.Errorf("the output is %+v", out)
			}
		}
	})
}

// What a job set off is told to the user, once.
func TestTheUserIsToldOnceThatTurnsAreUsedUp(t *testing.T) {
	play(t, func(w world) {
		w.Know(func(s *directory.Snapshot) { s.MaxTurns = 3 })
		looper := w.Extension(
			bus.Actor{ID: "looper", Publish: []string{contract.TopicAgentTask}},
			kerneltest.On(contract.TopicAgentOutput),
		)
		w.telegram.Says("anna", "go")
		asked := 0
		for {
			if d := w.orchestrator.Next(); d != nil {
				asked++
				session := d.GetTurn().GetSession()
				w.orchestrator.Acks(
					d,
					kerneltest.Publish(contract.TopicAgentOutput, contract.AgentOutput{Session: session, Outcome: contract.OutcomeOK}),
				)
			} else if d := looper.Next(); d != nil {
				looper.Acks(d, kerneltest.Publish(contract.TopicAgentTask, contract.AgentTask{Prompt: "go on"}))
			} else {
				break
			}
		}
		if asked != 3 {
			t.Errorf("a model was asked %d times, want 3", asked)
		}
		w.telegram.ShowsOne("I stopped here", "3 turns")
		dead := w.Dead(contract.TopicAgentInput + "orchestrator")
		if len(dead) == 0 || !strings.Contains(dead[0], "used up") {
			t.Errorf("dead letters: %q", dead)
		}
		w.Wait(time.Hour)
		w.orchestrator.HearsRecord("I stopped here")
		w.orchestrator.HearsNothing()
		w.telegram.IsSilent()

		// A new message begins a new chain.
		w.telegram.Says("anna", "hello")
		w.orchestrator.Hears("hello").Answers("hi")
		w.telegram.Shows("anna: hi")
	})
}

// Inputs that were queued while there was room end with their first rows.
func TestTurnsThatWereQueuedInTimeEndWhenTheyBegin(t *testing.T) {
	for name, step := range map[string]func(*kerneltest.Turn){
		"with an answer": func(t *kerneltest.Turn) { t.Answers("too much") },
		"with calls":     func(t *kerneltest.Turn) { _, _ = t.TriesToAsk([2]string{"core/list_channels", "{}"}) },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w world) {
				w.Know(func(s *directory.Snapshot) { s.MaxTurns = 2 })
				fan := w.Extension(
					bus.Actor{ID: "fan", Effects: []string{"session.ensure", "input"}, Publish: []string{contract.TopicAgentTask}},
					kerneltest.On(contract.TopicAgentOutput),
				)
				w.telegram.Says("anna", "go")
				w.orchestrator.Hears("go").Answers("going")
				w.telegram.Shows("anna: going")
				task := kerneltest.Publish(contract.TopicAgentTask, contract.AgentTask{Prompt: "branch"})
				fan.Acks(fan.Take(), task, task, task)
				branches := []*kerneltest.Turn{
					w.orchestrator.Hears("branch"),
					w.orchestrator.Hears("branch"),
					w.orchestrator.Hears("branch"),
				}
				branches[0].Answers("one more is allowed")
				step(branches[1])
				step(branches[2])
				w.telegram.Shows(
					"anna: one more is allowed",
					"anna: I stopped here: 2 turns followed from one event without you, which is the limit. Write to me, and I'll go on.",
				)
				for range 2 { // both were sent from outside of Anna's chat
					w.orchestrator.HearsRecord()
				}
				w.Wait(time.Hour)
				w.orchestrator.HearsNothing()
				outputs := w.outputs()
				for _, out := range outputs[2:] {
					if out.Outcome != contract.OutcomeCapped {
						t.Errorf("the output is %+v", out)
					}
				}
				if len(outputs) != 4 {
					t.Errorf("%d outputs", len(outputs))
				}
			})
		})
	}
}

// Events that lead to events without any model come to an end as well.
func TestEventsInACircleAreStoppedAndTold(t *testing.T) {
	play(t, func(w world) {
		loop := w.Extension(bus.Actor{ID: "loop", Publish: []string{"loop.again"}}, kerneltest.On("loop.again"))
		loop.Must("", kerneltest.Publish("loop.again", struct{}{}))
		handled := 0
		for d := loop.Next(); d != nil; d = loop.Next() {
			handled++
			loop.Acks(d, kerneltest.Publish("loop.again", struct{}{}))
		}
		if handled != contract.MaxHops+1 {
			t.Errorf("%d events were handled", handled)
		}
		w.telegram.ShowsOne("An event loop was stopped", "loop.again")
		if dead := w.Dead("loop.again"); len(dead) != 1 || !strings.Contains(dead[0], "the limit is 16") {
			t.Errorf("dead letters: %q", dead)
		}
	})
}

// Who cancels what went on for too long does so on its own account. What follows
// from that is still counted for the event that all of it came from.
func TestWhatIsCancelledAgainAndAgainComesToAnEnd(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		w.Know(func(s *directory.Snapshot) { s.MaxTurns = 3 })
		x, worker := employer(w), w.Agent("worker")
		x.Must("", kerneltest.Ensure("worker", "k"), kerneltest.Input("worker", "k", contract.InputTask, "do it"))
		turns := 0
		for ; turns < 10; turns++ {
			d := worker.Next()
			if d == nil {
				break
			}
			x.Must("", dismiss("k"))
			out := x.Take()
			x.Acks(out, kerneltest.Input("worker", "k", contract.InputTask, "do it again"))
		}
		if turns != 3 {
			t.Errorf("%d turns followed from one event, want 3", turns)
		}
	})
}
