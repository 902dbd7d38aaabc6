package host_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

func TestPresence(t *testing.T) {
	w := newWorld(t)
	s := withChat(w)
	watcher := w.admit(bus.Actor{ID: "heart", Presence: true, Publish: []string{contract.TopicAgentTask}})
	ask := func() *kernelv1.PresenceResponse {
		t.Helper()
		p, err := watcher.sessions.Presence(t.Context(), &kernelv1.PresenceRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := ask(); p.GetUserAtUs() != 0 || p.GetBusy() {
		t.Errorf("before anybody came: %v", p)
	}

	watcher.mustCommit(kerneltest.Publish(contract.TopicAgentTask, contract.AgentTask{Prompt: "work"}))
	<-s.held
	if p := ask(); p.GetUserAtUs() != 0 || p.GetBusy() {
		t.Errorf("while an agent works for nobody: %v", p)
	}

	heard, answer := make(chan struct{}), make(chan struct{})
	w.subscribe("other", contract.TopicAgentInput+"other")
	w.admit(bus.Actor{ID: "other", Agent: true}).runs(handles(func(d *busv1.Delivery) *busv1.Outcome {
		heard <- struct{}{}
		<-answer
		session := d.GetTurn().GetSession()
		row := kerneltest.Row(d.GetEvent().GetId(), kerneltest.Decode[contract.AgentInput](t, d.GetEvent()))
		return ack(
			&busv1.Effect{Kind: &busv1.Effect_Append{Append: &busv1.Append{Session: session, Entries: []*busv1.Entry{row}}}},
			kerneltest.Publish(
				contract.TopicAgentOutput,
				contract.AgentOutput{Session: session, Outcome: contract.OutcomeOK, Text: "hi"},
			),
		)
	}), &extensionv1.Description{Events: true})
	s.telegram.mustCommit(kerneltest.Publish(contract.TopicUserMessage, contract.UserMessage{
		UserID: "anna", ConversationID: "anna", Text: "hello", AgentID: "other",
	}))
	<-heard
	if p := ask(); !p.GetBusy() {
		t.Errorf("while a message is being answered: %v", p)
	}
	close(answer)
	for ask().GetBusy() { // until the test's deadline
		runtime.Gosched()
	}
	if p := ask(); p.GetUserAtUs() == 0 {
		t.Errorf("after the answer: %v", p)
	}

	_, err := s.telegram.sessions.Presence(t.Context(), &kernelv1.PresenceRequest{})
	if err = contract.FromStatus(
		err,
	); !errors.Is(err, contract.ErrDenied) ||
		!strings.Contains(err.Error(), "permissions: {presence: true}") {
		t.Errorf("without the grant: %v", err)
	}
}
