package router_test

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

func TestARefusedMessageIsAnsweredAndKept(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: "anna", Text: "hello", AgentID: "ghost"})
		telegram.ShowsOne(`There is no agent "ghost"`)
		w.Know(func(s *directory.Snapshot) { s.Routing = map[string]string{"telegram": "chat"} })
		telegram.Says("anna", "hello again")
		telegram.ShowsOne(`There is no agent "chat"`, "agents.routing")
		orchestrator.HearsNothing()
		if dead := w.Dead(contract.TopicUserMessage); len(dead) != 2 || !strings.Contains(dead[1], "chat") {
			t.Errorf("dead letters: %q", dead)
		}
		// Once the configuration is right, it can be sent once more.
		chat := w.Agent("chat")
		events := w.Events(contract.TopicUserMessage)
		if n, err := w.Bus.Resubmit(events[1].GetId()); n != 1 || err != nil {
			t.Errorf("resubmitting: %d, %v", n, err)
		}
		chat.Hears("hello again").Answers("better late")
		telegram.Shows("anna: better late")
	})
}

func TestAMessageWaitsForAnAgentThatIsDown(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, chat := w.Channel("telegram"), w.Agent("chat")
		w.Agent("another")
		telegram.Admits("anna")
		w.Know(func(s *directory.Snapshot) { s.Routing = map[string]string{"telegram": "chat"} })
		chat.Dies()
		telegram.Says("anna", "are you there?")
		telegram.IsSilent()
		w.Restart()
		telegram.IsSilent()
		chat.Starts()
		chat.Hears("are you there?").Answers("now I am")
		telegram.Shows("anna: now I am")
	})
}

func TestConversationsAreNeverShared(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, matrix, orchestrator := w.Channel("telegram"), w.Channel("matrix"), w.Agent("orchestrator")
		telegram.Admits("*")
		matrix.Admits("*")
		sessions := map[int64]string{}
		say := func(c *kerneltest.Channel, m contract.UserMessage) {
			t.Helper()
			m.UserID, m.Text = "anna", c.ID+" "+m.ConversationID+" "+m.ThreadID
			c.Reports(m)
			turn := orchestrator.Hears(m.Text)
			if before, known := sessions[turn.Session()]; known && before != m.Text {
				t.Errorf("%q and %q share a session", before, m.Text)
			}
			sessions[turn.Session()] = m.Text
			turn.Answers("to " + m.Text)
			address := m.ConversationID
			if m.ThreadID != "" {
				address += "/" + m.ThreadID
			}
			c.Shows(address + ": to " + m.Text)
		}
		places := []contract.UserMessage{
			{
				ConversationID: "1",
			},
			{ConversationID: "1", ThreadID: "2"},
			{ConversationID: "1:2"},
			{ConversationID: "2"},
			{ConversationID: "1~1"},
			{ConversationID: "1", ThreadID: "3"},
			{ConversationID: "family", Group: true},
		}
		for range 2 {
			for _, m := range places {
				say(telegram, m)
				say(matrix, m)
			}
		}
		if len(sessions) != 2*len(places) {
			t.Errorf("%d sessions, want %d", len(sessions), 2*len(places))
		}
	})
}

func TestPeopleOfAGroupAreNamed(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("*")
		telegram.Reports(
			contract.UserMessage{UserID: "1", UserName: "Anna", ConversationID: "family", Group: true, Text: "hello"},
		)
		turn := orchestrator.Hears("hello")
		if turn.Input.Sender != "Anna" || !turn.Input.Group || !turn.Delivery.GetTurn().GetGroup() {
			t.Errorf("the input is %+v in %v", turn.Input, turn.Delivery.GetTurn())
		}
		turn.Answers("hi")
	})
}

// A conversation may be known before anybody writes there.
func TestAGroupIsOneAlsoIfItWasWrittenToFirst(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "to the group"})
		d := telegram.Take()
		telegram.Acks(d, kerneltest.Receipt("r", "family", ""))
		orchestrator.HearsRecord("to the group")
		telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: "family", Group: true, Text: "hello"})
		turn := orchestrator.Hears("hello")
		if !turn.Input.Group || !turn.Delivery.GetTurn().GetGroup() {
			t.Errorf("the agent is not told that others can read: %+v", turn.Input)
		}
		turn.Answers("hi")
	})
}

func TestAnEditBeforeTheTurnReplacesTheText(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Says("anna", "first")
		running := orchestrator.Hears("first")
		second := telegram.Says("anna", "secnod")
		telegram.Says("anna", "third")
		telegram.Edits("anna", second, "second")
		telegram.Edits("anna", second, "second, finally")
		running.Answers("one")
		orchestrator.Hears("second, finally").Answers("two")
		orchestrator.Hears("third").Answers("three")
		orchestrator.HearsNothing()
		telegram.Shows("anna: one", "anna: two", "anna: three")
	})
}

func TestAnEditBeforeTheTurnSurvivesARestart(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		orchestrator.Dies()
		first := telegram.Says("anna", "frist")
		telegram.Says("anna", "second")
		telegram.Edits("anna", first, "first")
		w.Restart()
		orchestrator.Hears("first").Answers("one")
		orchestrator.Hears("second").Answers("two")
		telegram.Shows("anna: one", "anna: two")
	})
}

func TestALateEditIsARecord(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		first := telegram.Says("anna", "frist")
		running := orchestrator.Hears("frist")
		telegram.Edits("anna", first, "first") // the agent is at it
		running.Answers("one")
		telegram.Edits("anna", first, "first, again") // it was answered
		orchestrator.HearsRecord("edited an earlier message", "first")
		orchestrator.HearsRecord("edited an earlier message", "first, again")
		telegram.Shows("anna: one")
		telegram.Edits("anna", "m77", "of a message that nobody has seen")
		orchestrator.HearsRecord("of a message that nobody has seen")
		telegram.Edits("anna", first, "/stop") // no command
		orchestrator.HearsRecord("/stop")
		telegram.IsSilent()
	})
}

// What the model has read already is not replaced, although its delivery waits.
func TestAnEditOfAnInputThatIsPartOfATurnIsARecord(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		orchestrator.Dies()
		telegram.Says("anna", "first")
		second := telegram.Says("anna", "secnod")
		orchestrator.Starts()
		turn := orchestrator.Hears("first")
		inputs := w.Events(contract.TopicAgentInput + "orchestrator")
		orchestrator.Must(turn.Delivery.GetToken(), turn.Append(
			turn.InputRow(), kerneltest.Row(inputs[1].GetId(), kerneltest.Decode[contract.AgentInput](t, inputs[1])),
		))
		telegram.Edits("anna", second, "second")
		orchestrator.Acks(turn.Delivery, turn.Output(contract.OutcomeOK, "both"))
		orchestrator.HearsRecord("edited an earlier message", "second")
		orchestrator.HearsNothing()
		telegram.Shows("anna: both")
	})
}
