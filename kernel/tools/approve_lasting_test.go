package tools_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/tools"
)

// talk is where somebody writes.
type talk struct {
	person, conversation string
	group                bool
}

// asks reports whether a call of the guarded tool asks, for a message there. If it
// does, nobody answers.
func (w *world) asks(from talk) bool {
	w.T.Helper()
	w.telegram.Reports(contract.UserMessage{
		UserID: from.person, UserName: from.person, ConversationID: from.conversation, Group: from.group, Text: "go",
	})
	turn := w.orchestrator.Hears("go")
	_, result := w.wants(turn)
	w.Settle()
	asked := w.question() != ""
	if asked {
		w.telegram.Reports(contract.UserMessage{
			UserID: from.person, UserName: from.person, ConversationID: from.conversation, Group: from.group, Text: "no",
		})
	}
	if _, err := result(); err != nil {
		w.T.Fatal(err)
	}
	turn.Answers("")
	w.telegram.Sends()
	return asked
}

// question takes what is to be sent, and returns the question in it.
func (w *world) question() (id string) {
	w.T.Helper()
	for _, m := range w.telegram.Sends() {
		if m.Question != "" {
			id = m.Question
		}
	}
	return id
}

// The owner allows a tool in one conversation, or everywhere that others can't read.
func TestALastingApproval(t *testing.T) {
	anna, boris := talk{"anna", "anna", false}, talk{"boris", "boris", false}
	team, family := talk{"anna", "team", true}, talk{"anna", "family", true}
	for name, tt := range map[string]struct {
		in     talk
		answer string
		asks   map[talk]bool
	}{
		"once":             {anna, "yes", map[talk]bool{anna: true, boris: true, team: true, family: true}},
		"here":             {anna, "always here", map[talk]bool{anna: false, boris: true, team: true, family: true}},
		"everywhere":       {anna, "Всегда!", map[talk]bool{anna: false, boris: false, team: true, family: false}},
		"by a button":      {anna, "/approve q1 always", map[talk]bool{anna: false, boris: false, team: true, family: false}},
		"in a group":       {team, "always", map[talk]bool{anna: true, boris: true, team: false, family: true}},
		"in the household": {family, "always", map[talk]bool{anna: false, boris: false, team: true, family: false}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				a := w.guarded()
				w.telegram.Admits("anna", "boris")
				w.asks(anna) // she is the owner
				w.telegram.Reports(contract.UserMessage{
					UserID: "anna", UserName: "anna", ConversationID: "family", Group: true, Text: "/household",
				})
				w.telegram.Sends()
				w.telegram.Reports(contract.UserMessage{
					UserID: tt.in.person, UserName: "anna", ConversationID: tt.in.conversation, Group: tt.in.group, Text: "go",
				})
				turn := w.orchestrator.Hears("go")
				_, result := w.wants(turn)
				question := w.question()
				answer := tt.answer
				if name == "by a button" {
					answer = "/approve " + question + " always"
				}
				w.telegram.Reports(contract.UserMessage{
					UserID: tt.in.person, UserName: "anna", ConversationID: tt.in.conversation, Group: tt.in.group, Text: answer,
				})
				w.says(result, false, "burned")
				turn.Answers("")
				w.telegram.Sends()
				w.Restart()
				for where, want := range tt.asks {
					runs := len(a.requests)
					if asked := w.asks(where); asked != want || asked == (len(a.requests) > runs) {
						t.Errorf("in %s it is asked: %v, and ran %d times", where.conversation, asked, len(a.requests)-runs)
					}
				}
				w.Do(func(tx *bus.Tx) error {
					_, err := tools.RevokeApprovals(tx, "", burn)
					return err
				})
				for where := range tt.asks {
					if !w.asks(where) {
						t.Errorf("in %s it isn't asked after the approvals were revoked", where.conversation)
					}
				}
			})
		})
	}
}

func TestOnlyTheOwnerApprovesForGood(t *testing.T) {
	play(t, func(w *world) {
		a := w.guarded()
		w.telegram.Admits("anna", "boris")
		w.telegram.Says("boris", "go")
		turn := w.orchestrator.Hears("go")
		_, result := w.wants(turn)
		w.telegram.ShowsOne("burn")
		for _, answer := range []string{"always", "/approve q1 always here"} {
			w.telegram.Says("boris", answer)
			w.telegram.Sends()
			if w.open() != 1 || len(a.requests) != 0 {
				t.Fatalf("%s is taken from another person", answer)
			}
		}
		w.telegram.Says("boris", "yes")
		w.says(result, false, "burned")
		turn.Answers("")
		w.telegram.Sends()
		if !w.asks(talk{"boris", "boris", false}) {
			t.Error("one yes lasts")
		}
	})
}

// A lasting approval is of one agent and one tool.
func TestALastingApprovalIsOfOneAgent(t *testing.T) {
	play(t, func(w *world) {
		w.guarded()
		w.desk()
		helper := w.Agent("helper")
		turn := w.hears()
		_, whole := delegates(turn, "helper", "tidy up")
		task := helper.Hears("tidy up")
		_, result := w.wants(task)
		w.telegram.ShowsOne("helper wants to run notes/burn")
		w.telegram.Says("anna", "always here")
		w.says(result, false, "burned")
		_, again := w.wants(task) // of the same conversation
		w.says(again, false, "burned")
		task.Answers("All is tidy.")
		w.says(whole, false, "All is tidy.")
		turn.Answers("")
		w.telegram.Sends()
		if !w.asks(talk{"anna", "anna", false}) {
			t.Error("another agent need not ask")
		}
	})
}

func TestButtonsOfAnApproval(t *testing.T) {
	play(t, func(w *world) {
		w.guarded()
		w.telegram.Change(func(c *directory.Channel) { c.Actions = true })
		turn := w.hears()
		_, result := w.wants(turn)
		want := []contract.Action{
			{Label: "Yes", Command: "/approve q1"}, {Label: "No", Command: "/deny q1"},
			{Label: "Always here", Command: "/approve q1 always here"}, {Label: "Always", Command: "/approve q1 always"},
		}
		got := w.telegram.ShowsOne("burn").Actions
		for i, a := range want {
			if len(got) != len(want) || got[i] != a {
				t.Fatalf("the buttons are %v", got)
			}
		}
		w.telegram.Says("anna", got[0].Command)
		w.says(result, false, "burned")
		w.telegram.ShowsOne("q1: approved")
		w.telegram.Says("anna", got[1].Command) // an old button
		w.telegram.ShowsOne("q1 was already answered")
	})
}
