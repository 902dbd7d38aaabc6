package router_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// writes reports a private message of Boris that answers another one.
func (s scene) writes(text string, quote contract.Quote) {
	s.T.Helper()
	s.telegram.Reports(contract.UserMessage{
		UserID: "boris", UserName: "boris", ConversationID: "boris", Text: text, Quote: &quote,
	})
}

// receipt sends the next text, and returns what the platform calls it.
func (q inquiry) receipt() (id string) {
	q.T.Helper()
	d := q.telegram.Take()
	q.telegram.Confirms(d)
	q.Read(func(r journal.Reader) error {
		ds, err := r.Deliveries(journal.DeliveryFilter{Seq: d.GetEvent().GetSeq()})
		id = ds[0].ProviderID
		return err
	})
	return id
}

// A yes to one question approves no other.
func TestAReplyAnswersTheQuestionInTheMessageThatItRepliesTo(t *testing.T) {
	withInquiry(t, func(q inquiry) {
		q.telegram.Sends() // r1, ...
		before := len(q.answers())
		q.asks(contract.UserAsk{ReplyTo: q.boris})
		q.asks(contract.UserAsk{ReplyTo: q.boris, Text: "Restart?"})
		first, second := q.receipt(), q.receipt()

		q.writes("yes", contract.Quote{MessageID: "r0", Text: "Hello!"}) // of the assistant, not a question
		if turn := q.orchestrator.Hears("yes"); turn.Input.Quote == nil || turn.Input.Quote.Text != "Hello!" {
			t.Errorf("the agent gets %+v", turn.Input)
		} else {
			turn.Answers("")
		}
		if len(q.answers()) != before {
			t.Fatal("a reply to another message answered a question")
		}
		q.writes("yes", contract.Quote{MessageID: second})
		q.answered(contract.UserAnswer{Question: "q2", Outcome: contract.AskAnswered, Answer: "yes", By: "boris"})
		q.writes("no", contract.Quote{MessageID: second}) // it has ended
		q.orchestrator.Hears("no").Answers("")
		q.writes("no", contract.Quote{MessageID: first})
		q.answered(
			contract.UserAnswer{Question: "q2", Outcome: contract.AskAnswered, Answer: "yes", By: "boris"},
			contract.UserAnswer{Question: "q1", Outcome: contract.AskAnswered, Answer: "no", By: "boris"},
		)
	})
}

func TestAReplyToAnotherPersonMayAnswerAQuestion(t *testing.T) {
	withInquiry(t, func(q inquiry) {
		q.asks(contract.UserAsk{ReplyTo: q.boris})
		q.telegram.Sends()
		q.writes("yes", contract.Quote{MessageID: "7", Sender: "Anna", Text: "Well?"})
		q.answered(contract.UserAnswer{Question: "q1", Outcome: contract.AskAnswered, Answer: "yes", By: "boris"})
	})
}

// A reaction is noted. It runs no command, answers nothing, and begins no turn.
func TestAReactionIsNoted(t *testing.T) {
	withInquiry(t, func(q inquiry) {
		q.asks(contract.UserAsk{ReplyTo: q.boris})
		q.telegram.Sends()
		q.orchestrator.HearsRecord("Deploy?") // that it was asked
		for _, text := range []string{"👍", "yes", "/approve", "/stop"} {
			q.telegram.Reports(contract.UserMessage{
				UserID: "boris", UserName: "boris", ConversationID: "boris", Text: text, Reaction: true,
				Quote: &contract.Quote{MessageID: "r1", Text: "Deploy?"},
			})
			in := q.orchestrator.HearsRecord(text)
			if in.Quote == nil || in.Quote.Text != "Deploy?" {
				t.Errorf("the agent gets %+v", in)
			}
		}
		q.answered()
		q.telegram.IsSilent()
	})
}

// An extension offers its own commands. Where there are no buttons they are words.
func TestActionsOfANotice(t *testing.T) {
	withScene(t, func(s scene) {
		s.Know(func(d *directory.Snapshot) {
			d.Commands = append(d.Commands,
				command.Slash{Name: "snooze", Extension: contract.KernelSource}, command.Slash{Name: "usage", Extension: "usage"})
		})
		later := []contract.Action{{Label: "+10 min", Command: "/snooze 7 10m"}}
		s.notifies(contract.UserNotify{ReplyTo: s.boris, Actions: later})
		if m := s.telegram.ShowsOne("dinner\n\n+10 min: /snooze 7 10m"); len(m.Actions) != 0 {
			t.Errorf("a channel without buttons gets %v", m.Actions)
		}
		s.telegram.Change(func(c *directory.Channel) { c.Actions = true })
		s.notifies(contract.UserNotify{ReplyTo: s.boris, Actions: later})
		if m := s.telegram.ShowsOne("dinner"); m.Text != "dinner" || !slices.Equal(m.Actions, later) {
			t.Errorf("it gets %q with %v", m.Text, m.Actions)
		}
		for _, wrong := range [][]contract.Action{
			{{Label: "Usage", Command: "/usage"}}, {{Label: "Stop", Command: "/stop"}}, {{Label: "Yes", Command: "/approve q1"}},
			{{Label: "Later", Command: "snooze"}}, {{Label: " ", Command: "/snooze 7"}},
			{{Label: "Later", Command: "/snooze " + strings.Repeat("7", contract.MaxActionCommand)}},
			slices.Repeat(later, contract.MaxActions+1),
		} {
			dead := len(s.Dead(contract.TopicUserNotify))
			s.notifies(contract.UserNotify{ReplyTo: s.boris, Actions: wrong})
			if s.telegram.IsSilent(); len(s.Dead(contract.TopicUserNotify)) != dead+1 {
				t.Errorf("%v is offered", wrong)
			}
		}
	})
}

// The parts of a long text have its buttons once.
func TestActionsStandBelowTheLastPart(t *testing.T) {
	withInquiry(t, func(q inquiry) {
		q.telegram.Change(func(c *directory.Channel) { c.Actions, c.MaxLength = true, 60 })
		q.asks(contract.UserAsk{ReplyTo: q.boris, Text: strings.Repeat("word ", 40)})
		all := q.telegram.Sends()
		for i, m := range all {
			if last := i == len(all)-1; (len(m.Actions) == 2) != last {
				t.Errorf("part %d of %d has %v", i+1, len(all), m.Actions)
			}
		}
	})
}
