package tools_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// A call that waits when the kernel stops has no outcome: the next kernel asks again
// for the answer, and the call has it.
func TestStoppingLeavesAWaitingCallOpen(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "decide")
		turn := orchestrator.Hears("decide")
		id := turn.Asks([2]string{"core/ask_user", `{"question":"Which one?","options":["a","b"]}`})[0]
		result := turn.Calls(id)
		telegram.ShowsOne("Which one?")
		stopped := w.Tools
		w.Restart()
		stopped.Close()
		if _, err := result(); err == nil {
			t.Error("the call that the stop ended has an outcome")
		}
		again := orchestrator.HearsNext()
		result = again.Calls(id)
		telegram.Says("anna", "b")
		if r, err := result(); err != nil || r.GetIsError() || r.GetContent() == "" {
			t.Errorf("the call ends with %v, %v", r, err)
		}
		again.Answers("b it is")
	})
}
