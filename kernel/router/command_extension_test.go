package router_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/people"
)

func TestCommandOfAnExtensionIsAnsweredWhileATurnRuns(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator, lab := w.Channel("telegram"), w.Agent("orchestrator"), w.Commands("lab", "shout")
		telegram.Admits("anna")
		w.Know(func(s *directory.Snapshot) { s.Agents[0].Spec.Memory = []string{"personal"} })
		telegram.Says("anna", "a long one")
		running := orchestrator.Hears("a long one")
		message := telegram.Says("anna", "/shout  volume=11 to be\nheard ")
		d := lab.Take()
		session := w.Session("orchestrator", "chan:telegram:anna")
		given := kerneltest.Decode[contract.Command](t, d.GetEvent())
		handle := given.ReplyTo
		if want := (contract.Command{
			Name: "shout", Text: "volume=11 to be\nheard", Session: journal.SessionID(session.ID), Agent: "orchestrator", ReplyTo: handle,
			Channel: "telegram", Sender: "anna", Memory: []string{"personal"}, MessageID: message,
			Principal: contract.Principal{Person: running.Input.Person, Conversation: handle, Own: true},
			Accounts:  []string{running.Input.Person, people.Owner},
		}); !reflect.DeepEqual(given, want) || handle == "" || running.Input.Person == "" {
			t.Errorf("the command is\n%+v, want\n%+v", given, want)
		}
		lab.Says(d, "HEY")
		if m := telegram.ShowsOne("HEY"); m.Conversation != "anna" || m.ReplyTo != message || m.Kind != contract.SendReply {
			t.Errorf("the answer is %+v", m)
		}
		running.Answers("done")
		telegram.Shows("anna: done")
		orchestrator.HearsNothing() // neither the command nor its answer are part of the dialog
	})
}

func TestCommandsOfSeveralChatsAreAnsweredWhereTheyWereGiven(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, terminal, lab := w.Channel("telegram"), w.Channel("terminal"), w.Commands("lab", "shout")
		w.Agent("orchestrator")
		telegram.Admits("anna", "boris")
		terminal.Admits("*")
		telegram.Says("anna", "/shout a")
		telegram.Reports(
			contract.UserMessage{
				UserID:         "boris",
				UserName:       "Boris",
				ConversationID: "family",
				ThreadID:       "7",
				Group:          true,
				Text:           "/shout b",
			},
		)
		terminal.Says("anna", "/shout c")
		for range 3 {
			d := lab.Take()
			given := kerneltest.Decode[contract.Command](t, d.GetEvent())
			if given.Group != (given.Text == "b") {
				t.Errorf("the command is %+v", given)
			}
			lab.Says(d, strings.ToUpper(given.Text))
		}
		telegram.Shows("anna: A", "family/7: B")
		terminal.Shows("anna: C")
	})
}

func TestCommandFromSomebodyWhoIsNotAdmittedIsNotRead(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, lab := w.Channel("telegram"), w.Commands("lab", "shout")
		w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("mallory", "/shout pay me")
		if m := telegram.ShowsOne(); strings.Contains(m.Text, "shout") {
			t.Errorf("a stranger is told %q", m.Text)
		}
		telegram.Reports(
			contract.UserMessage{UserID: "mallory", ConversationID: "family", Group: true, Text: "/shout pay me"},
		)
		telegram.IsSilent()
		if d := lab.Next(); d != nil || len(w.Events("command.shout")) != 0 {
			t.Errorf("the command of a stranger reached the extension: %v", d)
		}
	})
}

func TestCommandWaitsForItsExtension(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, lab := w.Channel("telegram"), w.Commands("lab", "shout")
		w.Agent("orchestrator")
		telegram.Admits("anna")
		lab.Dies()
		w.Know(func(s *directory.Snapshot) { s.Commands[0].State = contract.StateBackingOff })
		telegram.Says("anna", "/shout hey")
		telegram.Shows("anna: Lab isn't running. /shout will run when it's back.")
		w.Restart()
		lab.Says(lab.Take(), "HEY")
		telegram.Shows("anna: HEY")

		lab.Dies()
		telegram.Says("anna", "/shout again")
		telegram.ShowsOne("will run when it's back")
		w.Wait(time.Hour)
		telegram.Shows("anna: /shout didn't run: it was not handled within 10m0s.")
		lab.Starts()
		if d := lab.Next(); d != nil {
			t.Errorf("it runs after all: %v", d)
		}

		w.Know(func(s *directory.Snapshot) { s.Commands[0].State = contract.StateFailed })
		telegram.Says("anna", "/shout a third time")
		telegram.ShowsOne("/shout can't run: Lab has failed")
		w.Know(func(s *directory.Snapshot) { s.Program.Restart = "kernel restart" })
		telegram.Says("anna", "/shout a fourth time")
		telegram.ShowsOne("/shout can't run: Lab has failed. Restart it with `kernel restart lab`.")
		w.Know(func(s *directory.Snapshot) { s.Commands[0].State, s.Commands[0].Withheld = contract.StateActive, true })
		telegram.Says("anna", "/shout a fifth time")
		telegram.Shows("anna: /shout can't run: the owner hasn't allowed it as Lab describes it now.")
		telegram.Says("anna", "/help shout")
		telegram.ShowsOne("/shout: what shout does (not allowed by the owner)")
		if n := len(w.Events("command.shout")); n != 2 {
			t.Errorf("%d commands were published", n)
		}
	})
}

func TestCommandThatFailsForGoodIsAnswered(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, lab := w.Channel("telegram"), w.Commands("lab", "shout")
		w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "/shout")
		lab.Drops(lab.Take(), "I have no voice")
		telegram.Shows("anna: /shout didn't run: I have no voice.")
		telegram.Says("anna", "/shout")
		for range 3 {
			lab.Take()
			lab.Dies()
			lab.Starts()
			w.Wait(time.Minute)
		}
		telegram.ShowsOne("/shout was interrupted, so it's unknown whether it took effect: failed 3 times", "it crashed")
		if n := len(w.Dead("command.shout")); n != 2 {
			t.Errorf("%d commands are dead letters", n)
		}
	})
}

// Who only looks on neither answers nor is reported about.
func TestOnlyTheExtensionOfACommandAnswersIt(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, lab := w.Channel("telegram"), w.Commands("lab", "shout")
		w.Agent("orchestrator")
		looker := w.Extension(bus.Actor{ID: "looker"}, kerneltest.On("command.shout"))
		auditor := w.Extension(bus.Actor{ID: "auditor"}, kerneltest.On("command.*"))
		telegram.Admits("anna")
		telegram.Says("anna", "/shout")
		looker.Says(looker.Take(), "me too")
		auditor.Says(auditor.Take(), "me too")
		telegram.IsSilent()
		lab.Says(lab.Take(), "HEY")
		telegram.Shows("anna: HEY")
		telegram.Says("anna", "/shout")
		looker.Drops(looker.Take(), "no")
		auditor.Drops(auditor.Take(), "no")
		telegram.IsSilent()
	})
}

func TestLongAnswerToACommandIsCut(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, lab := w.Channel("telegram"), w.Commands("lab", "shout")
		w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "/shout")
		lab.Says(lab.Take(), strings.Repeat("ä", 1<<20))
		if m := telegram.ShowsOne("[cut: it was longer]"); len(m.Text) > 33<<10 {
			t.Errorf("the answer has %d bytes", len(m.Text))
		}
		telegram.Says("anna", "/shout")
		lab.Says(lab.Take(), " \n")
		telegram.IsSilent()
	})
}

func TestHelpListsTheCommandsOfExtensions(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram := w.Channel("telegram")
		w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "/help")
		if m := telegram.ShowsOne("/agent [name]"); strings.Contains(m.Text, "Extensions") {
			t.Errorf("without extensions the help is %q", m.Text)
		}
		w.Commands("lab", "shout", "look")
		telegram.Says("anna", "/help")
		telegram.ShowsOne("/new: start", "/sethome: get", "\n- Lab: /shout, /look")
		w.Commands("shop", "buy", "sell", "count", "close", "open")
		telegram.Says("anna", "/help")
		telegram.ShowsOne("\n- Lab: /shout, /look\n- Shop: /buy, /sell, /count and 2 more (/help shop)")
		for _, name := range []string{"lab", "LAB"} {
			telegram.Says("anna", "/help "+name)
			telegram.Shows("anna: - /shout: what shout does\n- /look: what look does")
		}
		for _, name := range []string{"look", "/look"} {
			telegram.Says("anna", "/help "+name)
			telegram.Shows("anna: - /look: what look does")
		}
		telegram.Says("anna", "/help new")
		telegram.Shows("anna: - /new: start a new conversation")
		telegram.Says("anna", "/help nothing")
		telegram.ShowsOne("no command or extension named nothing", "/help")
		telegram.Says("anna", "/start reference")
		telegram.ShowsOne("/new: start")
	})
}

// A command is answered also where no agent is.
func TestCommandWithoutAnAgent(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, lab := w.Channel("telegram"), w.Commands("lab", "shout")
		telegram.Admits("anna")
		telegram.Says("anna", "/shout")
		d := lab.Take()
		if given := kerneltest.Decode[contract.Command](t, d.GetEvent()); given.Session != "" || given.Agent != "" {
			t.Errorf("the command is %+v", given)
		}
		lab.Says(d, "HEY")
		telegram.Shows("anna: HEY")
	})
}
