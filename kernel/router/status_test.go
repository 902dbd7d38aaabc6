package router_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// /status says who else is at work for the conversation, and counts nothing that
// is done for others.
func TestStatusCountsWhoWorksForTheConversation(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		tasks := w.Extension(bus.Actor{ID: "tasks", Effects: []string{"session.ensure", "input"}})
		telegram.Admits("anna", "boris")
		telegram.Says("anna", "hello")
		here := orchestrator.Hears("hello")
		here.Answers("hi")
		telegram.Shows("anna: hi")
		var working []*kerneltest.Turn
		for _, key := range []string{"task:1", "task:2"} {
			in := kerneltest.Input("orchestrator", key, contract.InputTask, "dig "+key)
			in.GetInput().ReplyTo = here.Input.ReplyTo
			tasks.Must("", kerneltest.Ensure("orchestrator", key), in)
			working = append(working, orchestrator.Hears("dig "+key))
		}
		asks := func(who, want string) {
			t.Helper()
			telegram.Says(who, "/status")
			telegram.Shows(who + ": - Here: orchestrator is idle" + want + "\nall is well")
		}
		asks("anna", "; 2 other agents are working for this conversation")
		asks("boris", "")
		working[0].Answers("found")
		asks("anna", "; 1 other agent is working for this conversation")
		working[1].Answers("found")
		asks("anna", "")
	})
}
