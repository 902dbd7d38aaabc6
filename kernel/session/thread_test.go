package session_test

import (
	"context"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// The thread of an input, and the key under which it was queued, come back with
// the calls of its turn and with what is said, however the turn ends; and an
// extension that wants its own outputs gets no others.
func TestThreadsComeBackToWhoSetThem(t *testing.T) {
	play(t, func(w world) {
		own := kerneltest.On(contract.TopicAgentOutput)
		own.Own = true
		links := w.Extension(bus.Actor{ID: "links", Effects: []string{"session.ensure", "input", "turn.cancel"}}, own)
		other := w.Extension(bus.Actor{ID: "other", Effects: []string{"session.ensure", "input"}}, own)
		all := w.Extension(bus.Actor{ID: "all"}, kerneltest.On(contract.TopicAgentOutput))
		called := map[string]string{}
		for _, id := range []string{"links", "other"} {
			w.Tool(
				id,
				&extensionv1.Tool{Name: "look", Description: "looks", Schema: []byte(`{"type":"object"}`), ReadOnly: true},
				func(_ context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
					called[id] = r.GetThread() + " " + r.GetInput()
					return &extensionv1.CallResult{Content: "seen"}, nil
				},
			)
		}
		links.Must("", kerneltest.Ensure("orchestrator", "link:orchestrator:lead"))
		for _, thread := range []string{"x1", "x2", "x3", ""} {
			links.Must("", &busv1.Effect{Kind: &busv1.Effect_Input{Input: &busv1.Input{
				Agent:     "orchestrator",
				Key:       "link:orchestrator:lead",
				Kind:      contract.InputMessage,
				Text:      "on " + thread,
				Thread:    thread,
				DedupeKey: "m" + thread,
			}}})
		}
		w.telegram.Says("anna", "hello")
		one := w.orchestrator.HearsNext()
		chat := w.orchestrator.HearsNext() // another lane
		if one.Input.Kind == contract.InputUser {
			one, chat = chat, one
		}
		chat.Answers("hello yourself")
		one.Uses("links/look", map[string]any{})
		one.Uses("other/look", map[string]any{})
		if called["links"] != "x1 mx1" || called["other"] != "x1 " {
			t.Errorf("the calls are of the threads and inputs %q", called)
		}
		one.Answers("one")
		w.orchestrator.Hears("on x2")
		links.Must("", kerneltest.CancelTurn(one.Session(), "enough"))
		third := w.orchestrator.Hears("on x3")
		w.orchestrator.Drops(third.Delivery, "it is broken")
		w.orchestrator.Hears("on ").Answers("four")
		for _, want := range []struct{ thread, outcome string }{
			{"x1", contract.OutcomeOK}, {"x2", contract.OutcomeCancelled}, {"x3", contract.OutcomeDead}, {"", contract.OutcomeOK},
		} {
			d := links.Take()
			out := kerneltest.Decode[contract.AgentOutput](t, d.GetEvent())
			if out.Thread != want.thread || out.Input != "m"+want.thread || out.Outcome != want.outcome {
				t.Errorf("it hears %+v, want the outcome %s of %q", out, want.outcome, want.thread)
			}
			links.Acks(d)
		}
		if d := links.Next(); d != nil {
			t.Errorf("it hears what goes to others: %s", d.GetEvent().GetPayload())
		}
		if d := other.Next(); d != nil {
			t.Errorf("another one hears %s", d.GetEvent().GetPayload())
		}
		for range 2 {
			all.Acks(all.Take())
		}
	})
}
