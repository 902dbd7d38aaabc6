package router_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

func TestAJobAnswersWhereItWasAskedTo(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		cli, telegram, orchestrator := w.Channel("cli"), w.Channel("telegram"), w.Agent("orchestrator")
		cli.Admits("*")
		telegram.Admits("anna", "boris")
		telegram.Says("boris", "hello")
		here := orchestrator.Hears("hello")
		here.Answers("hi")
		telegram.Shows("boris: hi")
		handle := here.Input.ReplyTo

		job := func(task contract.AgentTask) {
			t.Helper()
			task.Prompt = "look"
			w.Emits(contract.TopicAgentTask, task)
			turn := orchestrator.Hears("look")
			if turn.Input.Kind != contract.InputTask || turn.Delivery.GetTurn().GetChannel() != "" {
				t.Errorf("the job is %+v in %v", turn.Input, turn.Delivery.GetTurn())
			}
			turn.Answers("found")
		}
		job(contract.AgentTask{ReplyTo: handle})
		telegram.Shows("boris: found")
		orchestrator.HearsRecord("found") // in his conversation, for he may answer
		job(contract.AgentTask{ChannelID: "telegram", ReplyTo: handle})
		telegram.Shows("boris: found")
		orchestrator.HearsRecord("found")
		job(contract.AgentTask{ChannelID: "cli", ReplyTo: handle})
		cli.Shows(": found")
		job(contract.AgentTask{ChannelID: "telegram"})
		if m := telegram.ShowsOne("found"); m.Owner != "anna" {
			t.Errorf("the answer goes to %q of %q", m.Conversation, m.Owner)
		}
		orchestrator.HearsRecord("found")
		job(contract.AgentTask{}) // the first one that is ready
		cli.Shows(": found")
		w.Know(func(s *directory.Snapshot) { s.DefaultChannel = "telegram" })
		job(contract.AgentTask{})
		telegram.ShowsOne("found")
		orchestrator.HearsRecord("found")
		orchestrator.HearsNothing()
	})
}

// The send tool plus the final text would say everything twice.
func TestAJobThatHasSentSomethingSaysNoMore(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		cli, telegram, orchestrator := w.Channel("cli"), w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.GoesOffline() // the tool does not wait for a receipt
		for _, outcome := range []string{contract.OutcomeOK, contract.OutcomeError} {
			w.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "write to Telegram", ChannelID: "cli"})
			turn := orchestrator.Hears("write to Telegram")
			turn.Uses("core/send_to_channel", map[string]string{"channel_id": "telegram", "text": "it rains"})
			turn.Ends(outcome, "I have sent it.")
			if outcome == contract.OutcomeOK {
				cli.IsSilent()
			} else {
				cli.Shows(": I have sent it.")
			}
		}
	})
}

func TestAChatThatHasSentSomethingStillAnswers(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		cli, telegram, orchestrator := w.Channel("cli"), w.Channel("telegram"), w.Agent("orchestrator")
		cli.Admits("*")
		telegram.GoesOffline()
		cli.Says("anna", "write to Telegram")
		turn := orchestrator.Hears("write to Telegram")
		turn.Uses("core/send_to_channel", map[string]string{"channel_id": "telegram", "text": "it rains"})
		turn.Answers("I have sent it.")
		cli.Shows("anna: I have sent it.")
	})
}

func TestABackgroundJobSpeaksToNobody(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		cli, orchestrator := w.Channel("cli"), w.Agent("orchestrator")
		w.Emits(contract.TopicAgentBackground, contract.AgentBackground{Prompt: "tidy up", Name: "nightly"})
		turn := orchestrator.Hears("tidy up")
		turn.Answers("tidied")
		cli.IsSilent()
		if rows := w.History(
			w.Session("orchestrator", "job:orchestrator:nightly").ID,
		); !slices.Equal(
			rows,
			[]string{"input: tidy up", "answer: tidied"},
		) {
			t.Errorf("the history is %q", rows)
		}
	})
}

func TestJobsOfOneNameShareASession(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		w.Channel("cli")
		orchestrator := w.Agent("orchestrator")
		sessions := map[int64]int{}
		for _, name := range []string{"a", "a", "", "", "b"} {
			w.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "go", Name: name})
			turn := orchestrator.Hears("go")
			sessions[turn.Session()]++
			turn.Answers("gone")
		}
		if len(sessions) != 4 {
			t.Errorf("sessions: %v", sessions)
		}
	})
}

func TestAJobThatCannotRunIsToldAndKept(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		cli, orchestrator := w.Channel("cli"), w.Agent("orchestrator")
		w.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "go", AgentID: "ghost"})
		cli.ShowsOne(`There is no agent "ghost"`)
		w.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "  "})
		cli.IsSilent()
		orchestrator.HearsNothing()
		if dead := w.Dead(contract.TopicAgentTask); len(dead) != 2 || !strings.Contains(dead[1], "no prompt") {
			t.Errorf("dead letters: %q", dead)
		}
	})
}

func TestAJobForAChannelThatDoesNotExistIsAnsweredElsewhereAndTold(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		cli, orchestrator := w.Channel("cli"), w.Agent("orchestrator")
		w.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "go", ChannelID: "pigeon"})
		cli.ShowsOne(`"pigeon"`, "no such channel")
		orchestrator.Hears("go").Answers("gone")
		cli.Shows(": gone")
		if dead := w.Dead(contract.TopicAgentTask); len(dead) != 1 {
			t.Errorf("dead letters: %q", dead)
		}
	})
}

func TestTheAnswerOfAJobFindsAnotherChannelWhenItsOwnIsGone(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		cli, telegram, orchestrator := w.Channel("cli"), w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		w.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "go", ChannelID: "telegram"})
		turn := orchestrator.Hears("go")
		w.Know(func(s *directory.Snapshot) { s.Channels = s.Channels[:1] })
		turn.Answers("gone")
		cli.Shows(": gone")
	})
}

func TestAQuietJobReachesPeopleOnlyByWhatItSends(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		cli, telegram, orchestrator := w.Channel("cli"), w.Channel("telegram"), w.Agent("orchestrator")
		cli.Admits("*")
		telegram.Admits("anna")
		w.Know(func(s *directory.Snapshot) { s.DefaultChannel = "cli" })
		quiet := contract.AgentTask{Prompt: "look", Name: "heartbeat", Quiet: true}
		w.Emits(contract.TopicAgentTask, quiet)
		orchestrator.Hears("look").Answers("OK")
		w.Emits(contract.TopicAgentTask, quiet)
		orchestrator.Hears("look").Ends(contract.OutcomeError, "Sorry, that did not work.")
		w.Settle()
		cli.IsSilent()
		telegram.IsSilent()
	})
}

// What is asked for in a group is answered there: its job is told nothing private.
func TestAJobOfAGroupIsReadByTheGroup(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: "family", Group: true, Text: "hello"})
		here := orchestrator.HearsNext()
		here.Answers("hi")
		for _, group := range []bool{false, true} { // the second has the session of the first
			task := contract.AgentTask{Prompt: "look", Name: "nightly"}
			if group {
				task.ReplyTo = here.Input.ReplyTo
			}
			w.Emits(contract.TopicAgentTask, task)
			turn := orchestrator.Hears("look")
			if turn.Input.Group != group || turn.Delivery.GetTurn().GetGroup() != group {
				t.Errorf("of a group: %v; the job is %+v in %v", group, turn.Input, turn.Delivery.GetTurn())
			}
			turn.Answers("")
		}
	})
}
