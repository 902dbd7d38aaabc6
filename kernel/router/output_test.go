package router_test

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// The reply target is pinned when the message is accepted, whatever is written
// elsewhere meanwhile.
func TestAnAnswerGoesWhereTheMessageCameFrom(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, cli, orchestrator := w.Channel("telegram"), w.Channel("cli"), w.Agent("orchestrator")
		telegram.Admits("anna")
		cli.Admits("*")
		telegram.Says("anna", "from Telegram")
		cli.Says("anna", "from the terminal")
		one, two := orchestrator.Hears("from Telegram"), orchestrator.Hears("from the terminal")
		two.Answers("to the terminal")
		one.Answers("to Telegram")
		telegram.Shows("anna: to Telegram")
		cli.Shows("anna: to the terminal")
	})
}

func TestAnEmptyAnswerSendsNothing(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		for _, text := range []string{"", " \n\t", "\u200b\u2060"} {
			telegram.Says("anna", "be quiet")
			orchestrator.Hears("be quiet").Answers(text)
		}
		telegram.IsSilent()
		if dead := w.Dead(contract.TopicAgentOutput); len(dead) != 0 {
			t.Errorf("dead letters: %q", dead)
		}
	})
}

// Whatever ends a turn, its text goes the same way.
func TestEveryOutcomeIsSaid(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		for _, outcome := range []string{contract.OutcomeOK, contract.OutcomeError, contract.OutcomeTimeout, contract.OutcomeCapped} {
			telegram.Says("anna", "work")
			orchestrator.Hears("work").Ends(outcome, "it is "+outcome)
			telegram.Shows("anna: it is " + outcome)
		}
	})
}

func TestALongAnswerIsOneSendForEachPart(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Change(func(c *directory.Channel) { c.MaxLength = 200 })
		telegram.Says("anna", "tell me a story")
		orchestrator.Hears("tell me a story").Answers(strings.Repeat("All's well that ends well. ", 20))
		parts := telegram.Sends()
		var whole []string
		for i, m := range parts {
			if m.Part != i+1 || m.Parts != len(parts) || m.Conversation != "anna" || (m.DraftID != "") != (i == 0) {
				t.Errorf("part %d is %+v", i, m)
			}
			if len(contract.RepeatMark)+len(m.Text) > 200 {
				t.Errorf("part %d leaves no room for the mark of a repetition: %d", i, len(m.Text))
			}
			whole = append(whole, m.Text)
		}
		if got, want := strings.Join(
			whole,
			" ",
		), strings.TrimSpace(
			strings.Repeat("All's well that ends well. ", 20),
		); got != want {
			t.Errorf("the parts say %q", got)
		}
		orchestrator.HearsNothing() // a reply is no news to its own session
	})
}

// What an extension has a session do is answered to the session's outbound, also
// if the input names the conversation for which it works.
func TestTheOutputOfAnExtensionsSessionIsTheExtensionsAlone(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		tasks := w.Extension(
			bus.Actor{ID: "tasks", Effects: []string{"session.ensure", "input"}},
			kerneltest.On(contract.TopicAgentOutput),
		)
		tasks.Must(
			"",
			kerneltest.Ensure("orchestrator", "task:1"),
			kerneltest.Input("orchestrator", "task:1", contract.InputTask, "dig"),
		)
		orchestrator.Hears("dig").Answers("dug")
		out := kerneltest.Decode[contract.AgentOutput](t, tasks.Take().GetEvent())
		if out.Text != "dug" || out.Outcome != contract.OutcomeOK {
			t.Errorf("the output is %+v", out)
		}
		telegram.IsSilent()

		telegram.Says("anna", "hello")
		turn := orchestrator.Hears("hello")
		asked := turn.Input.ReplyTo
		turn.Answers("hi")
		telegram.Shows("anna: hi")
		in := kerneltest.Input("orchestrator", "task:1", contract.InputTask, "dig on")
		in.GetInput().ReplyTo = asked
		tasks.Must("", in)
		orchestrator.Hears("dig on").Answers("dug on")
		telegram.IsSilent()
	})
}

// A turn that begins by itself in a chat speaks in that chat.
func TestANoticeInAChatIsAnsweredInThatChat(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, cli, orchestrator := w.Channel("telegram"), w.Channel("cli"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "hello")
		turn := orchestrator.Hears("hello")
		turn.Answers("hi")
		tasks := w.Extension(bus.Actor{ID: "tasks", Effects: []string{"input"}})
		tasks.Must("", kerneltest.Input("orchestrator", "chan:telegram:anna", contract.InputNotice, "the task is done"))
		orchestrator.Hears("the task is done").Answers("By the way: it is done.")
		telegram.Shows("anna: hi", "anna: By the way: it is done.")
		cli.IsSilent()
	})
}

func TestAnAnswerToAChannelThatIsGoneIsKept(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, cli, orchestrator := w.Channel("telegram"), w.Channel("cli"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "a secret")
		turn := orchestrator.Hears("a secret")
		w.Know(func(s *directory.Snapshot) { s.Channels = s.Channels[:1] })
		turn.Answers("the secret answer")
		cli.IsSilent()
		if dead := w.Dead(contract.TopicAgentOutput); len(dead) != 1 {
			t.Errorf("dead letters: %q", dead)
		}
	})
}

// A channel may quote what an answer is for; the terminal takes it as accepted.
func TestAnAnswerNamesTheMessageItAnswers(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		command := telegram.Says("anna", "/status")
		if got := telegram.ShowsOne(); got.ReplyTo != command {
			t.Errorf("the answer to a command is to message %q, want %q", got.ReplyTo, command)
		}
		message := telegram.Says("anna", "one")
		running := orchestrator.Hears("one")
		telegram.Says("anna", "two")
		running.Answers("to one")
		if got := telegram.ShowsOne("to one"); got.ReplyTo != message {
			t.Errorf("the answer is to message %q, want %q", got.ReplyTo, message)
		}
	})
}
