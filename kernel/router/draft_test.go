package router_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

func showsDrafts(c *directory.Channel) { c.Drafts = true }

// A turn that has nothing to say in the end takes back what it may have shown.
func TestATurnThatSaysNothingRemovesItsDraft(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Change(showsDrafts)
		telegram.Says("anna", "be quiet")
		turn := orchestrator.Hears("be quiet")
		turn.Answers(" \n")
		sends := telegram.Sends()
		if len(sends) != 1 || !sends[0].RemovesDraft() || sends[0].Conversation != "anna" ||
			sends[0].DraftID != turn.Delivery.GetEvent().GetId() {
			t.Errorf("the channel is told %+v", sends)
		}

		// So does one that is ended by /new, ahead of the answer to that.
		telegram.Says("anna", "tell me a story")
		orchestrator.Hears("tell me a story")
		telegram.Says("anna", "/new")
		if sends = telegram.Sends(); len(sends) != 2 || !sends[0].RemovesDraft() || sends[1].RemovesDraft() {
			t.Errorf("the channel is told %+v", sends)
		}
		orchestrator.HearsNothing()
	})
}

// A draft that cannot be removed is no message that could not be delivered.
func TestADraftThatStaysIsNobodysBusiness(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, cli, orchestrator := w.Channel("telegram"), w.Channel("cli"), w.Agent("orchestrator")
		telegram.Admits("anna")
		cli.Admits("*")
		cli.Says("owner", "hello")
		orchestrator.Hears("hello").Answers("hello")
		cli.Shows("owner: hello")
		telegram.Change(showsDrafts)
		telegram.Says("anna", "be quiet")
		orchestrator.Hears("be quiet").Answers("")
		telegram.Drops(telegram.Take(), "blocked")
		cli.IsSilent()
		if dead := w.Dead(contract.TopicChannelSend + "telegram"); len(dead) != 1 {
			t.Errorf("dead letters: %q", dead)
		}
	})
}
