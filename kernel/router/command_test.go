package router_test

import (
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

func TestCommandsAreAnsweredWhileATurnRuns(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "a long one")
		running := orchestrator.Hears("a long one")
		telegram.Says("anna", "/status")
		telegram.Shows("anna: - Here: orchestrator is working\nall is well")
		telegram.Says("anna", "/help")
		telegram.ShowsOne("/new", "/stop", "/agent", "/status", "/sethome")
		telegram.Says("anna", "/nonsense and more")
		telegram.ShowsOne("There is no command /nonsense", "/help")
		telegram.Says("anna", "/etc/passwd is a path")
		telegram.Says("anna", "/status")
		telegram.Shows("anna: - Here: orchestrator is working on 2 messages\nall is well")
		running.Answers("done")
		orchestrator.Hears("/etc/passwd is a path").Answers("so it is")
		telegram.Shows("anna: done", "anna: so it is")
		telegram.Says("anna", "/status")
		telegram.Shows("anna: - Here: orchestrator is idle\nall is well")
		telegram.Says("anna", "/new")
		telegram.ShowsOne("New conversation")
		telegram.Says("anna", "/status")
		telegram.Shows("anna: - Here: orchestrator is idle\nall is well")
	})
}

func TestForwardedCommandIsText(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: "anna", Text: "/help", ForwardedFrom: "Eve"})
		turn := orchestrator.Hears("/help")
		if turn.Input.ForwardedFrom != "Eve" {
			t.Errorf("the input is %+v", turn.Input)
		}
		turn.Answers("It is from Eve.")
		telegram.Shows("anna: It is from Eve.")
	})
}

func TestStopARunningTurn(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna", "boris")
		telegram.Says("anna", "work")
		running := orchestrator.Hears("work")
		running.Asks([2]string{"core/list_channels", "{}"})
		telegram.Says("boris", "work for me")
		other := orchestrator.Hears("work for me")
		telegram.Says("anna", "not begun yet")
		telegram.Says("anna", "/stop")
		telegram.Shows("anna: Stopped. Dropped 1 message that waited: “not begun yet”.")
		if !orchestrator.Cancelled(running.Delivery.GetToken()) {
			t.Error("the agent was not told")
		}
		running.Answers("too late")
		telegram.IsSilent()
		other.Answers("untouched")
		telegram.Shows("boris: untouched")
		orchestrator.HearsNothing()
	})
}

func TestStopBeforeTheAgentHasRecordedAnything(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "work")
		running := orchestrator.Hears("work")
		telegram.Says("anna", "/stop")
		telegram.Shows("anna: Stopped.")
		running.Answers("too late")
		telegram.IsSilent()
		orchestrator.HearsNothing()
		session := w.Session("orchestrator", "chan:telegram:anna")
		if rows := w.History(session.ID); len(rows) != 1 || rows[0] != "input: work" {
			t.Errorf("the history is %q", rows)
		}
	})
}

// A turn whose agent has died is stopped as well: it does not come back.
func TestStopAnInterruptedTurn(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "work")
		orchestrator.Hears("work").Asks([2]string{"core/list_channels", "{}"})
		orchestrator.Dies()
		telegram.Says("anna", "/stop")
		telegram.Shows("anna: Stopped.")
		orchestrator.Starts()
		orchestrator.HearsNothing()
		w.Restart()
		orchestrator.HearsNothing()
	})
}

func TestStopWhenNothingRuns(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "/stop")
		telegram.Shows("anna: Nothing is running here.")
		telegram.Says("anna", "work")
		orchestrator.Hears("work").Answers("done")
		telegram.Says("anna", "/stop")
		telegram.Shows("anna: done", "anna: Nothing is running here.")

		orchestrator.Dies()
		telegram.Says("anna", "waits")
		telegram.Says("anna", "/stop")
		telegram.Shows("anna: Stopped. Dropped 1 message that waited: “waits”.")
		orchestrator.Starts()
		orchestrator.HearsNothing()
	})
}

// A record is no turn: there is nothing to stop, and it is not lost.
func TestStopWhileARecordIsWrittenDown(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		message := telegram.Says("anna", "work")
		work := orchestrator.Hears("work")
		telegram.Edits("anna", message, "more work")
		work.Answers("done")
		record := orchestrator.HearsNext()
		telegram.Says("anna", "/stop")
		telegram.Shows("anna: done", "anna: Nothing is running here.")
		orchestrator.Acks(record.Delivery, record.Append(record.InputRow()))
		if rows := w.History(record.Session()); len(rows) != 3 {
			t.Errorf("the history is %q", rows)
		}
		orchestrator.HearsNothing()
	})
}

func TestNewBeginsAfresh(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "before")
		before := orchestrator.Hears("before")
		before.Answers("noted")
		telegram.Says("anna", "running")
		running := orchestrator.Hears("running")
		telegram.Says("anna", "/new")
		telegram.Shows("anna: noted", "anna: New conversation. The old one is saved, but I won't use it.")
		running.Answers("too late")
		telegram.Says("anna", "after")
		after := orchestrator.Hears("after")
		if after.Session() == before.Session() || after.Delivery.GetTurn().GetHistorySeq() != 0 {
			t.Errorf("the session %d goes on in %d", before.Session(), after.Session())
		}
		after.Answers("hello")
		telegram.Shows("anna: hello")
		if rows := w.History(before.Session()); len(rows) != 3 {
			t.Errorf("what is kept of the old one: %q", rows)
		}
	})
}

// What waited at a /new is still answered, and can still be stopped.
func TestStopReachesWhatWasAskedBeforeNew(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "running")
		orchestrator.Hears("running")
		telegram.Says("anna", "waiting")
		telegram.Says("anna", "/new")
		telegram.ShowsOne("New conversation")
		old := orchestrator.Hears("waiting")
		telegram.Says("anna", "/stop")
		telegram.Shows("anna: Stopped.")
		old.Answers("too late")
		telegram.IsSilent()
	})
}

func TestChooseAnAgent(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator, helper := w.Channel("telegram"), w.Agent("orchestrator"), w.Agent("helper")
		w.Agent("hidden")
		telegram.Admits("anna", "boris")
		w.Know(func(s *directory.Snapshot) {
			s.DefaultAgent, s.EnabledAgents = "orchestrator", []string{"orchestrator", "helper"}
		})
		telegram.Says("anna", "/agent")
		telegram.ShowsOne("orchestrator answers here", "helper, orchestrator")
		telegram.Says("anna", "/agent hidden")
		telegram.ShowsOne(`"hidden" is not enabled`)
		telegram.Says("anna", "/agent ghost")
		telegram.ShowsOne(`There is no agent "ghost"`)
		telegram.Says("anna", "/agent helper")
		telegram.ShowsOne("helper answers here from now on")
		telegram.Says("anna", "hello")
		helper.Hears("hello").Answers("helper here")
		telegram.Says("boris", "hello")
		orchestrator.Hears("hello").Answers("orchestrator here")
		telegram.Shows("anna: helper here", "boris: orchestrator here")

		// It stays chosen, and is never silently replaced.
		w.Restart()
		w.Know(func(s *directory.Snapshot) { s.EnabledAgents = []string{"orchestrator"} })
		telegram.Says("anna", "and now?")
		telegram.ShowsOne(`"helper" is not enabled`, "/agent")
		telegram.Says("anna", "/agent")
		telegram.ShowsOne(`"helper" is not enabled`)
		telegram.Reports(
			contract.UserMessage{UserID: "anna", ConversationID: "anna", Text: "by name", AgentID: "orchestrator"},
		)
		orchestrator.Hears("by name").Answers("yes")
		telegram.Shows("anna: yes")
	})
}

// The other agent's turn is stopped as well: to people it is one conversation.
func TestStopReachesTheAgentThatAnsweredBefore(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		w.Agent("zhelper")
		telegram.Admits("anna")
		telegram.Says("anna", "work")
		running := orchestrator.Hears("work")
		telegram.Says("anna", "/agent zhelper")
		telegram.Says("anna", "/stop")
		telegram.Shows("anna: zhelper answers here from now on.", "anna: Stopped.")
		running.Answers("too late")
		telegram.IsSilent()
	})
}

func TestAttachmentsAreMentioned(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		photo := []contract.Attachment{{Kind: "photo"}, {Kind: "voice_note", Name: "a.ogg"}}
		telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: "anna", Text: "look", Attachments: photo})
		orchestrator.Hears("look\n[photo]\n[voice_note: a.ogg]").Answers("I cannot see it")
		telegram.Shows(
			"anna: I couldn't read this: photo, voice note.",
			"anna: I cannot see it",
		)
		telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: "anna", Attachments: photo})
		telegram.ShowsOne("couldn't read")
		orchestrator.HearsNothing()
		w.Wait(time.Minute)
		telegram.IsSilent()
	})
}
