package session_test

import (
	"fmt"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// What sessions tell each other stands in the same queue as what a person
// writes, whether the agent runs or not, and over a restart of the kernel: each
// with its kind and its sender, in the order in which its sender queued it.
func TestTypedInputsWaitForTheAgentLikeAnyOther(t *testing.T) {
	for name, meanwhile := range map[string]func(w *kerneltest.World, worker *kerneltest.Agent){
		"it runs":                      func(*kerneltest.World, *kerneltest.Agent) {},
		"it is stopped and starts":     func(_ *kerneltest.World, worker *kerneltest.Agent) { worker.Starts() },
		"the kernel is killed as well": func(w *kerneltest.World, worker *kerneltest.Agent) { w.Restart(); worker.Starts() },
	} {
		t.Run(name, func(t *testing.T) {
			kerneltest.Run(t, func(w *kerneltest.World) {
				grants := []string{"session.ensure", "input"}
				links, tasks := w.Extension(
					bus.Actor{ID: "links", Effects: grants},
				), w.Extension(
					bus.Actor{ID: "tasks", Effects: grants},
				)
				worker := w.Agent("worker")
				if name != "it runs" {
					worker.Stops()
				}
				tell := func(x *kerneltest.Extension, kind, sender, text string) {
					x.Must("", kerneltest.Ensure("worker", "k"), &busv1.Effect{Kind: &busv1.Effect_Input{Input: &busv1.Input{
						Agent: "worker", Key: "k", Kind: kind, Sender: sender, Text: text, Thread: "x1",
					}}})
				}
				for i := range 3 {
					tell(links, contract.InputMessage, "lead", fmt.Sprintf("message %d", i))
					tell(tasks, contract.InputResult, "task-1", fmt.Sprintf("result %d", i))
					tell(links, contract.InputRecord, "links", fmt.Sprintf("record %d", i))
				}
				meanwhile(w, worker)
				for i := range 3 {
					for _, want := range []struct{ kind, sender, text string }{
						{contract.InputMessage, "lead", "message"}, {contract.InputResult, "task-1", "result"}, {contract.InputRecord, "links", "record"},
					} {
						turn := worker.HearsNext()
						in := turn.Input
						if in.Kind != want.kind || in.Sender != want.sender || in.Text != fmt.Sprintf("%s %d", want.text, i) ||
							in.Thread != "x1" {
							t.Errorf("it hears %+v, want %+v", in, want)
						}
						if in.Kind == contract.InputRecord {
							worker.Acks(turn.Delivery, turn.Append(turn.InputRow()))
							continue
						}
						turn.Answers("yes")
					}
				}
				worker.HearsNothing()
			})
		})
	}
}
