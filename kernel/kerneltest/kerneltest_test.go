package kerneltest_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

func TestAConversation(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "hello")
		orchestrator.Hears("hello").Answers("hello yourself")
		telegram.Shows("anna: hello yourself")
		w.Restart()
		telegram.IsSilent()
		orchestrator.HearsNothing()
	})
}
