package router_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

func whenIdle(session int64) *busv1.Effect {
	return &busv1.Effect{Kind: &busv1.Effect_SessionIdle{SessionIdle: &busv1.SessionIdle{
		Session: journal.SessionID(session),
	}}}
}

// /stop answer ends the turn alone, as Ctrl-C in the terminal does.
func TestStopOnlyTheAnswer(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		tasks := w.Extension(bus.Actor{ID: "tasks"}, kerneltest.On(contract.TopicStopped))
		telegram.Admits("anna")
		telegram.Says("anna", "/stop answer")
		telegram.Shows("anna: Nothing is running here.")
		telegram.Says("anna", "work")
		orchestrator.Hears("work")
		telegram.Says("anna", "not begun yet")
		telegram.Says("anna", "/stop answer")
		telegram.Shows("anna: Stopped.")
		orchestrator.Hears("not begun yet").Answers("this is kept")
		telegram.Shows("anna: this is kept")
		if d := tasks.Next(); d != nil {
			t.Errorf("extensions get %s", d.GetEvent().GetPayload())
		}
	})
}

// Everything is stopped in one commit: no kill answers a dropped message later. The
// agent knows what it did not answer, and an extension which conversation that was.
func TestStopDropsWhatWaits(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		tasks := w.Extension(bus.Actor{ID: "tasks", Effects: []string{"input"}}, kerneltest.On(contract.TopicStopped),
			kerneltest.On(contract.TopicSessionIdle+"tasks"))
		telegram.Admits("anna")
		telegram.Says("anna", "work")
		running := orchestrator.Hears("work")
		tasks.Must("", whenIdle(running.Session()))
		for i := range 7 {
			telegram.Says("anna", fmt.Sprintf("message %d\n\nof %s", i, strings.Repeat("many ", 20)))
		}
		tasks.Must("", kerneltest.Input("orchestrator", "chan:telegram:anna", contract.InputNotice, "a has finished"))
		telegram.Says("anna", "/stop now")
		said := telegram.ShowsOne("Stopped. Dropped 7 messages that waited: “message 0 of many many",
			"“message 4", " and 2 more. Dropped 1 notice that I hadn't read.")
		if strings.Contains(said.Text, "message 5") {
			t.Errorf("too much is quoted: %s", said.Text)
		}
		running.Answers("too late")
		heard := map[string]*busv1.Event{}
		for range 2 {
			e := tasks.Take().GetEvent()
			heard[e.GetTopic()] = e
		}
		idle := kerneltest.Decode[contract.SessionIdle](t, heard[contract.TopicSessionIdle+"tasks"])
		stopped := kerneltest.Decode[contract.ConversationStopped](t, heard[contract.TopicStopped])
		session := w.Session("orchestrator", "chan:telegram:anna")
		id := journal.SessionID(session.ID)
		if !idle.Stopped || idle.Session != id || !slices.Equal(stopped.Sessions, []string{id}) || stopped.Conversation == "" {
			t.Errorf("extensions get %+v and %+v", idle, stopped)
		}
		rows := w.History(session.ID)
		if n := len(rows); n != 10 || !strings.Contains(rows[8], "a has finished") ||
			!strings.Contains(rows[9], "dropped and not answered") {
			t.Errorf("the history is %q", rows)
		}
		w.Restart()
		orchestrator.HearsNothing()
		telegram.Says("anna", "/stop")
		telegram.Shows("anna: Nothing is running here.")
		telegram.Says("anna", "and now?")
		orchestrator.Hears("and now?").Answers("yes")
		telegram.Shows("anna: yes")
	})
}

// A task that works for the conversation is for its extension to end; the answer does
// not say that nothing runs.
func TestStopWhileATaskRuns(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		tasks := w.Extension(bus.Actor{ID: "tasks", Effects: []string{"session.ensure", "input"}})
		telegram.Admits("anna")
		telegram.Says("anna", "hello")
		hello := orchestrator.Hears("hello")
		hello.Answers("hi")
		telegram.Shows("anna: hi")
		tasks.Must("", kerneltest.Ensure("orchestrator", "task:t1:x"),
			&busv1.Effect{Kind: &busv1.Effect_Input{Input: &busv1.Input{Agent: "orchestrator", Key: "task:t1:x",
				Kind: contract.InputTask, Text: "dig", ReplyTo: hello.Input.ReplyTo}}})
		task := orchestrator.Hears("dig")
		telegram.Says("anna", "/stop")
		telegram.Shows("anna: Stopped.")
		if orchestrator.Cancelled(task.Delivery.GetToken()) {
			t.Error("the kernel ended it")
		}
	})
}
