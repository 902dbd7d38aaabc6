package router_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

func revoke(w *kerneltest.World, person string) (ended *adminv1.RevokeResponse, err error) {
	err = w.Bus.Do(func(tx *bus.Tx) (err error) {
		ended, err = w.Router.Revoke(tx, "telegram", person)
		return err
	})
	w.Settle()
	return ended, err
}

// household is a channel where Anna, its owner, and Boris are approved and have written.
type household struct {
	*kerneltest.World
	telegram     *kerneltest.Channel
	orchestrator *kerneltest.Agent
	tasks        *kerneltest.Extension
	boris        *kerneltest.Turn // his first one, which has ended
}

func withHousehold(t *testing.T, play func(h household)) {
	t.Helper()
	kerneltest.Run(t, func(w *kerneltest.World) {
		h := household{World: w, telegram: w.Channel("telegram"), orchestrator: w.Agent("orchestrator")}
		h.tasks = w.Extension(bus.Actor{
			ID: "tasks", Effects: []string{"session.ensure", "input"}, Publish: []string{contract.TopicUserAsk},
		}, kerneltest.On(contract.TopicPersonRevoked))
		for _, person := range []string{"anna", "boris"} {
			if _, err := approve(w, asksIn(w, h.telegram, person)); err != nil {
				t.Fatal(err)
			}
			h.telegram.ShowsOne("You are connected")
		}
		h.telegram.Says("boris", "hello")
		h.boris = h.orchestrator.Hears("hello")
		h.boris.Answers("hi")
		h.telegram.Shows("boris: hi")
		play(h)
	})
}

func (h household) revokesBoris(want *adminv1.RevokeResponse) {
	h.T.Helper()
	got, err := revoke(h.World, "boris")
	if err != nil {
		h.T.Fatal(err)
	}
	event := got.GetEvent()
	if got.Event = ""; !proto.Equal(got, want) || event == "" {
		h.T.Errorf("ended: %v, want %v; the event is %q", got, want, event)
	}
}

func TestRevokingEndsWhatRunsAndWaits(t *testing.T) {
	withHousehold(t, func(h household) {
		h.telegram.Says("anna", "work for me")
		hers := h.orchestrator.Hears("work for me")
		h.telegram.Says("boris", "work")
		his := h.orchestrator.Hears("work")
		his.Asks([2]string{"lab/slow", "{}"})
		h.telegram.Says("boris", "and this")
		h.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "look", ReplyTo: h.boris.Input.ReplyTo})
		job := h.orchestrator.Hears("look")
		h.telegram.GoesOffline()
		h.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "a reminder", ReplyTo: h.boris.Input.ReplyTo})
		h.tasks.Must("", kerneltest.Publish(contract.TopicUserAsk, contract.UserAsk{
			Kind: contract.AskApprove, Text: "Sure?", Topic: "tasks.answered", ReplyTo: h.boris.Input.ReplyTo,
		}))

		h.revokesBoris(&adminv1.RevokeResponse{Turns: 2, Jobs: 1, Questions: 1, Sends: 1})
		h.telegram.IsBack()
		h.telegram.IsSilent()
		for name, turn := range map[string]*kerneltest.Turn{"turn": his, "job": job} {
			if _, err := h.orchestrator.Commits(turn.Delivery.GetToken(), turn.Output(contract.OutcomeOK, "done")); err == nil {
				t.Errorf("the holder of the %s can still answer", name)
			}
		}
		answers := h.Events("tasks.answered")
		if len(answers) != 1 || !strings.Contains(string(answers[0].GetPayload()), contract.AskWithdrawn) {
			t.Errorf("the question ended with %v", answers)
		}
		hers.Answers("done for you")
		h.telegram.Shows("anna: done for you")

		// He is a stranger, and a new approval brings nothing back.
		code := asksIn(h.World, h.telegram, "boris")
		h.orchestrator.HearsNothing()
		if _, err := approve(h.World, code); err != nil {
			t.Fatal(err)
		}
		h.telegram.ShowsOne("You are connected")
		h.telegram.Says("boris", "hello again")
		again := h.orchestrator.Hears("hello again")
		if again.Session() == h.boris.Session() || again.Input.ReplyTo == h.boris.Input.ReplyTo {
			t.Error("the conversation of before goes on")
		}
		again.Answers("hi again")
		h.telegram.Shows("boris: hi again")
		h.orchestrator.HearsNothing()
	})
}

// What still holds a handle of a person who was revoked reaches no one, and runs no
// agent.
func TestNothingIsSaidAfterRevoking(t *testing.T) {
	withHousehold(t, func(h household) {
		handle := h.boris.Input.ReplyTo
		h.tasks.Must("", &busv1.Effect{Kind: &busv1.Effect_SessionEnsure{SessionEnsure: &busv1.SessionEnsure{
			Agent: "orchestrator", Key: "task:t1:x", Within: journal.SessionID(h.boris.Session()),
			Outbound: &busv1.Outbound{Kind: busv1.Outbound_KIND_EXTENSION},
		}}})
		h.tasks.Must("", kerneltest.Input("orchestrator", "task:t1:x", contract.InputTask, "dig"))
		worker := h.orchestrator.Hears("dig")
		h.revokesBoris(&adminv1.RevokeResponse{})
		if _, err := h.orchestrator.Commits(worker.Delivery.GetToken(), worker.Output(contract.OutcomeOK, "dug")); err == nil {
			t.Error("a task of his can still end by itself")
		}
		h.Restart()

		told := kerneltest.Decode[contract.PersonRevoked](t, h.tasks.Take().GetEvent())
		if !slices.Contains(told.Conversations, handle) || len(told.Sessions) != 2 {
			t.Errorf("extensions get %+v", told)
		}
		h.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "a reminder", ReplyTo: handle})
		h.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "another", ReplyTo: handle, ChannelID: "telegram"})
		h.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "look", ReplyTo: handle})
		h.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "look", ReplyTo: handle, ChannelID: "telegram"})
		for topic, want := range map[string]int{contract.TopicUserNotify: 2, contract.TopicAgentTask: 2} {
			dead := h.Dead(topic)
			if len(dead) != want || !strings.Contains(strings.Join(dead, "\n"), "was revoked") {
				t.Errorf("dead letters of %s: %q", topic, dead)
			}
		}
		for _, key := range []string{"task:t1:x", "chan:telegram:boris"} {
			h.tasks.Must("", kerneltest.Input("orchestrator", key, contract.InputResult, "it is done"))
		}
		cancelled := 0
		for _, e := range h.Events(contract.TopicAgentOutput) {
			if kerneltest.Decode[contract.AgentOutput](t, e).Outcome == contract.OutcomeCancelled {
				cancelled++
			}
		}
		if cancelled != 3 {
			t.Errorf("%d turns were cancelled, want the worker's and those of two late inputs", cancelled)
		}
		h.orchestrator.HearsNothing()
		h.telegram.IsSilent()
	})
}

// inAGroup opens a group of Anna and Boris, and returns what says something there.
func (h household) inAGroup() (says func(person, text string)) {
	h.T.Helper()
	says = func(person, text string) {
		h.telegram.Reports(contract.UserMessage{UserID: person, ConversationID: "family", Group: true, Text: text})
	}
	says("anna", "first")
	h.orchestrator.Hears("first").Answers("")
	h.telegram.ShowsOne("/household")
	return says
}

// In a group only what the person had asked for ends.
func TestRevokingInAGroup(t *testing.T) {
	withHousehold(t, func(h household) {
		says := h.inAGroup()
		says("boris", "mine")
		his := h.orchestrator.Hears("mine")
		says("anna", "hers")
		says("boris", "mine, too")
		h.revokesBoris(&adminv1.RevokeResponse{Turns: 2})
		if _, err := h.orchestrator.Commits(his.Delivery.GetToken(), his.Output(contract.OutcomeOK, "done")); err == nil {
			t.Error("his turn can still answer")
		}
		h.orchestrator.Hears("hers").Answers("for her")
		h.telegram.Shows("family: for her")
		h.orchestrator.HearsNothing()
	})
}

// The turn of another person in a group goes on when what waits after it ends.
func TestRevokingLeavesTheTurnsOfOthersInAGroup(t *testing.T) {
	withHousehold(t, func(h household) {
		says := h.inAGroup()
		says("anna", "hers")
		hers := h.orchestrator.Hears("hers")
		hers.Asks([2]string{"core/list_channels", "{}"}) // the turn has begun
		says("boris", "mine")
		h.revokesBoris(&adminv1.RevokeResponse{Turns: 1})
		hers.Answers("for her")
		h.telegram.Shows("family: for her")
		h.orchestrator.HearsNothing()
	})
}
