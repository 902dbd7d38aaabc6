package router_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// inquiry is a scene with an extension that asks people. Anna owns the Telegram
// bot, and the terminal is local.
type inquiry struct {
	scene
	deploy *kerneltest.Extension
}

func withInquiry(t *testing.T, play func(q inquiry)) {
	t.Helper()
	withScene(t, func(s scene) {
		s.cli.Change(func(c *directory.Channel) { c.Local = true })
		play(
			inquiry{
				s,
				s.Extension(bus.Actor{ID: "deploy", Publish: []string{contract.TopicUserAsk}}, kerneltest.On("deploy.answered")),
			},
		)
	})
}

// asks asks a question of kind approve, unless a says otherwise.
func (q inquiry) asks(a contract.UserAsk) {
	q.T.Helper()
	if a.Kind == "" {
		a.Kind = contract.AskApprove
	}
	if a.Text == "" {
		a.Text = "Deploy?"
	}
	if a.Topic == "" {
		a.Topic = "deploy.answered"
	}
	q.deploy.Must("", kerneltest.Publish(contract.TopicUserAsk, a))
}

// answers are the answers so far.
func (q inquiry) answers() (all []contract.UserAnswer) {
	q.T.Helper()
	for _, e := range q.Events("deploy.answered") {
		if e.GetSource() != contract.KernelSource {
			q.T.Errorf("%s answers", e.GetSource())
		}
		all = append(all, kerneltest.Decode[contract.UserAnswer](q.T, e))
	}
	return all
}

func (q inquiry) answered(want ...contract.UserAnswer) {
	q.T.Helper()
	if got := q.answers(); !slices.Equal(got, want) {
		q.T.Fatalf("the answers are %+v, want %+v", got, want)
	}
}

// shown takes what channels have to send, and the records of that.
func (q inquiry) shown(c *kerneltest.Channel, words ...string) {
	q.T.Helper()
	c.ShowsOne(words...)
	for d := q.orchestrator.Next(); d != nil; d = q.orchestrator.Next() {
		in := kerneltest.Decode[contract.AgentInput](q.T, d.GetEvent())
		if in.Kind != contract.InputRecord {
			q.T.Fatalf("the agent hears %q", in.Text)
		}
		q.orchestrator.Acks(
			d,
			kerneltest.AppendAt(
				journal.ParseSessionID(d.GetTurn().GetSession()),
				d.GetTurn().GetHistorySeq(),
				kerneltest.Row(d.GetEvent().GetId(), in),
			),
		)
	}
}

func TestAPersonAnswersWhereTheyWereAsked(t *testing.T) {
	colors := []string{"red", "Dark blue"}
	tests := []struct {
		ask     contract.UserAsk
		text    string
		answer  string // empty: it is none
		message string // a part of what is shown
	}{
		{contract.UserAsk{}, "yes", "yes", "Reply yes or no."},
		{contract.UserAsk{}, " Да! ", "yes", "Deploy?"},
		{contract.UserAsk{}, "OK", "yes", "q1"},
		{contract.UserAsk{}, "нет", "no", "/deny q1"},
		{contract.UserAsk{}, "no.", "no", ""},
		{contract.UserAsk{}, "yes, but later", "", ""},
		{contract.UserAsk{}, "nobody", "", ""},
		{contract.UserAsk{Kind: contract.AskChoose, Options: colors}, "2", "Dark blue", "1. red\n2. Dark blue"},
		{contract.UserAsk{Kind: contract.AskChoose, Options: colors}, "dark BLUE", "Dark blue", "from 1 to 2"},
		{contract.UserAsk{Kind: contract.AskChoose, Options: colors}, "3", "", ""},
		{contract.UserAsk{Kind: contract.AskChoose, Options: colors}, "0", "", ""},
		{contract.UserAsk{Kind: contract.AskChoose, Options: colors}, "yes", "", ""},
		{contract.UserAsk{Kind: contract.AskAnswer}, "on Monday, I think", "on Monday, I think", "next message"},
		{contract.UserAsk{Kind: contract.AskAnswer}, "/status", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.ask.Kind+" "+tt.text, func(t *testing.T) {
			withInquiry(t, func(q inquiry) {
				tt.ask.ReplyTo, tt.ask.Ref = q.boris, "r-17"
				q.asks(tt.ask)
				q.shown(q.telegram, tt.message)
				q.telegram.Reports(
					contract.UserMessage{UserID: "boris", ConversationID: "boris", Text: tt.text, ForwardedFrom: "Eve"},
				)
				q.answered() // what another person wrote answers nothing
				q.orchestrator.Hears(tt.text).Answers("")
				q.telegram.Says("boris", tt.text)
				if tt.answer == "" {
					q.answered()
					if !strings.HasPrefix(tt.text, "/") {
						q.orchestrator.Hears(tt.text)
					}
					return
				}
				q.answered(
					contract.UserAnswer{Question: "q1", Ref: "r-17", Outcome: contract.AskAnswered, Answer: tt.answer, By: "boris"},
				)
				q.telegram.ShowsOne("q1")
				q.orchestrator.HearsNothing()
				// It is answered once: the next message is a message.
				q.telegram.Says("boris", tt.text)
				q.orchestrator.Hears(tt.text)
				q.answered(q.answers()[0])
			})
		})
	}
}

// Whoever may write in a conversation may answer there; the owner may also do so
// from elsewhere, but not for somebody else.
func TestWhoMayAnswer(t *testing.T) {
	const group = "team"
	tests := []struct {
		name    string
		asked   func(q inquiry) contract.UserAsk
		channel func(q inquiry) *kerneltest.Channel // that answers
		person  string
		in      string // group; empty: private
		may     bool
	}{
		{"the owner, at the terminal", toAnna, terminal, "local", "", true},
		{"somebody else, on the same channel", toAnna, telegram, "boris", "", false},
		{"the owner, for somebody else", toBoris, telegram, "anna", "", false},
		{"the terminal, for somebody else", toBoris, terminal, "local", "", false},
		{"asked at the terminal, the owner on Telegram", toTerminal, telegram, "anna", "", true},
		{"asked at the terminal, somebody else", toTerminal, telegram, "boris", "", false},
		{"asked in a group, the owner in private", toGroup, telegram, "anna", "", true},
		{"asked in a group, somebody there", toGroup, telegram, "boris", group, true},
		{"asked in a group, somebody of it in private", toGroup, telegram, "boris", "", false},
		{"the owner, in a group where others read it", toAnna, telegram, "anna", group, false},
		{"a stranger in a group", toGroup, telegram, "clara", group, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			withInquiry(t, func(q inquiry) {
				q.asks(tt.asked(q))
				q.settleSends()
				says := func(text string) string {
					m := contract.UserMessage{UserID: tt.person, UserName: tt.person, ConversationID: tt.person, Text: text}
					if tt.in != "" {
						m.ConversationID, m.Group = tt.in, true
					}
					c := tt.channel(q)
					c.Reports(m)
					var said []string
					for _, s := range c.Sends() {
						said = append(said, s.Text)
					}
					return strings.Join(said, "\n")
				}
				if listed := says("/questions"); strings.Contains(listed, "Deploy?") != tt.may {
					t.Errorf("the list is %q", listed)
				}
				said := says("/approve q1")
				if !tt.may {
					q.answered()
					if tt.person != "clara" && !strings.Contains(said, "There is no question q1 for you here") {
						t.Errorf("they are told %q", said)
					}
					return
				}
				by := tt.person
				if by == "local" {
					by = "the owner"
				}
				q.answered(contract.UserAnswer{Question: "q1", Outcome: contract.AskAnswered, Answer: "yes", By: by})
				if !strings.Contains(said, "q1: approved") {
					t.Errorf("they are told %q", said)
				}
				if said := says("/deny q1"); !strings.Contains(said, "was already answered by ") || !strings.HasSuffix(said, ": yes") {
					t.Errorf("a second answer is told %q", said)
				}
				q.answered(q.answers()[0])
			})
		})
	}
}

func terminal(q inquiry) *kerneltest.Channel { return q.cli }
func telegram(q inquiry) *kerneltest.Channel { return q.telegram }

func toAnna(inquiry) contract.UserAsk     { return contract.UserAsk{ChannelID: "telegram"} }
func toBoris(q inquiry) contract.UserAsk  { return contract.UserAsk{ReplyTo: q.boris} }
func toTerminal(inquiry) contract.UserAsk { return contract.UserAsk{} }

func toGroup(q inquiry) contract.UserAsk {
	q.telegram.Reports(
		contract.UserMessage{UserID: "anna", UserName: "anna", ConversationID: "team", Group: true, Text: "hello"},
	)
	turn := q.orchestrator.HearsNext()
	turn.Answers("")
	return contract.UserAsk{ReplyTo: turn.Input.ReplyTo}
}

// settleSends confirms what is to be sent.
func (q inquiry) settleSends() {
	q.T.Helper()
	q.cli.Sends()
	q.telegram.Sends()
}

func TestAnAnswerFromElsewhereIsToldWhereItWasAsked(t *testing.T) {
	withInquiry(t, func(q inquiry) {
		q.asks(contract.UserAsk{ChannelID: "telegram"})
		q.shown(q.telegram, "Deploy?")
		q.cli.Says("local", "/approve")
		q.cli.ShowsOne("q1: approved")
		q.telegram.ShowsOne("Question q1 was answered by the owner on Cli: yes")
	})
}

func TestAQuestionThatNobodyHasSeenIsTakenBackWhenItEnds(t *testing.T) {
	withInquiry(t, func(q inquiry) {
		q.telegram.GoesOffline()
		q.asks(contract.UserAsk{ReplyTo: q.boris, ExpiresSeconds: 60})
		q.asks(contract.UserAsk{ChannelID: "telegram"})
		// What is written before a question was shown does not answer it.
		q.telegram.Says("boris", "yes")
		q.orchestrator.Hears("yes").Answers("")
		q.cli.Says("local", "/approve")
		q.cli.ShowsOne("q2: approved")
		q.Wait(2 * time.Minute)
		q.EndsQuestions()
		q.telegram.IsBack()
		q.telegram.IsSilent()
		if got := q.answers(); len(got) != 2 || got[0].Answer != "yes" || got[1].Outcome != contract.AskExpired {
			t.Errorf("the answers are %+v", got)
		}
	})
}

func TestTwoQuestionsAndOneAnswer(t *testing.T) {
	withInquiry(t, func(q inquiry) {
		q.asks(contract.UserAsk{ReplyTo: q.boris})
		q.asks(contract.UserAsk{ReplyTo: q.boris, Text: "Restart?"})
		q.asks(contract.UserAsk{ReplyTo: q.boris, Text: "Which one?", Kind: contract.AskChoose, Options: []string{"a", "b"}})
		q.telegram.Sends()
		for _, text := range []string{"yes", "/approve", "/answer yes"} {
			q.telegram.Says("boris", text)
			q.telegram.ShowsOne("Which question do you mean?", "- q1: Deploy?", "- q2: Restart?")
		}
		q.answered()
		q.telegram.Says("boris", "b") // only one can be meant
		q.telegram.Says("boris", "/answer Q2 no")
		q.telegram.Says("boris", "yes")
		q.answered(
			contract.UserAnswer{Question: "q3", Outcome: contract.AskAnswered, Answer: "b", By: "boris"},
			contract.UserAnswer{Question: "q2", Outcome: contract.AskAnswered, Answer: "no", By: "boris"},
			contract.UserAnswer{Question: "q1", Outcome: contract.AskAnswered, Answer: "yes", By: "boris"},
		)
		q.telegram.Sends()
		q.telegram.Says("boris", "/answer yes")
		q.telegram.ShowsOne("no open question")
	})
}

func TestCommandsAboutQuestions(t *testing.T) {
	withInquiry(t, func(q inquiry) {
		q.cli.Says("local", "/questions")
		q.cli.ShowsOne("No questions are open.")
		q.asks(contract.UserAsk{Text: "Which one?", Kind: contract.AskChoose, Options: []string{"a", "b"}})
		q.asks(contract.UserAsk{Text: "When?", Kind: contract.AskAnswer})
		q.cli.Sends()
		for _, tt := range [][]string{
			{"/questions", "- q1: Which one?\n  1. a\n  2. b", "- q2: When?"},
			{"/approve q1", "isn't a yes-or-no question", "/answer q1 TEXT"},
			{"/approve", "There is no open question to answer."},
			{"/answer q1 c", "That doesn't answer question q1.", "1. a"},
			{"/answer q2", "That doesn't answer question q2."},
			{"/answer q9 a", "There is no question q9"},
			{"/answer q1 2", "q1 is answered: b"},
			{"/deny q2", "q2 is dropped"},
		} {
			q.cli.Says("local", tt[0])
			q.cli.ShowsOne(tt[1:]...)
		}
		q.answered(
			contract.UserAnswer{Question: "q1", Outcome: contract.AskAnswered, Answer: "b", By: "the owner"},
			contract.UserAnswer{Question: "q2", Outcome: contract.AskWithdrawn, By: "the owner"},
		)
	})
}

func TestAQuestionExpiresOnce(t *testing.T) {
	withInquiry(t, func(q inquiry) {
		q.asks(contract.UserAsk{ReplyTo: q.boris, ExpiresSeconds: 3600})
		q.asks(contract.UserAsk{ReplyTo: q.boris, Text: "Restart?"}) // a day
		q.telegram.Sends()
		q.Wait(59 * time.Minute)
		q.EndsQuestions()
		q.answered()
		q.Restart()
		q.Wait(time.Minute)
		q.telegram.Says("boris", "/approve q1") // before anybody has looked
		q.telegram.ShowsOne("q1 has expired")
		q.EndsQuestions()
		q.EndsQuestions()
		q.answered(contract.UserAnswer{Question: "q1", Outcome: contract.AskExpired})
		q.telegram.ShowsOne("Question q1 wasn't answered in time: Deploy?", "That counts as no.")
		q.telegram.Says("boris", "/approve q1")
		q.telegram.ShowsOne("q1 has expired")
		q.Wait(23 * time.Hour)
		q.EndsQuestions()
		if got := q.answers(); len(got) != 2 || got[1].Outcome != contract.AskExpired {
			t.Errorf("the answers are %+v", got)
		}
		// It is remembered for a while only.
		q.Wait(8 * 24 * time.Hour)
		q.asks(contract.UserAsk{ReplyTo: q.boris})
		q.telegram.Sends()
		q.telegram.Says("boris", "/approve q1")
		q.telegram.ShowsOne("There is no question q1")
	})
}

func TestAQuestionSurvivesARestart(t *testing.T) {
	withInquiry(t, func(q inquiry) {
		q.asks(contract.UserAsk{ReplyTo: q.boris})
		q.shown(q.telegram, "Deploy?")
		q.Restart()
		q.telegram.IsSilent()
		q.telegram.Says("boris", "yes")
		q.answered(contract.UserAnswer{Question: "q1", Outcome: contract.AskAnswered, Answer: "yes", By: "boris"})
		if d := q.deploy.Take(); d.GetEvent().GetTopic() != "deploy.answered" {
			t.Errorf("the asker gets %v", d)
		}
	})
}

func TestAQuestionThatCannotBeAsked(t *testing.T) {
	for name, tt := range map[string]struct {
		ask    contract.UserAsk
		reason string
		told   bool // the asker is
	}{
		"a topic of another":  {contract.UserAsk{Topic: "scheduler.answered"}, "not a topic of deploy", false},
		"a topic of ours":     {contract.UserAsk{Topic: "agent.output"}, "not a topic of deploy", false},
		"no topic":            {contract.UserAsk{Topic: "deploy"}, "not a topic of deploy", false},
		"no such kind":        {contract.UserAsk{Kind: "beg"}, `unknown kind of question "beg"`, true},
		"no text":             {contract.UserAsk{Text: " "}, "no text", true},
		"nothing to choose":   {contract.UserAsk{Kind: contract.AskChoose, Options: []string{"a"}}, "2 to 20 options, not 1", true},
		"an empty option":     {contract.UserAsk{Kind: contract.AskChoose, Options: []string{"a", ""}}, "an option is empty", true},
		"options of approval": {contract.UserAsk{Options: []string{"a", "b"}}, "only a question of kind choose", true},
		"for ever":            {contract.UserAsk{ExpiresSeconds: 1 << 40}, "expires_seconds", true},
	} {
		t.Run(name, func(t *testing.T) {
			withInquiry(t, func(q inquiry) {
				tt.ask.Ref = "r"
				q.asks(tt.ask)
				if dead := q.Dead(contract.TopicUserAsk); len(dead) != 1 || !strings.Contains(dead[0], tt.reason) {
					t.Errorf("the dead letters are %q", dead)
				}
				q.cli.IsSilent()
				if tt.told {
					q.answered(contract.UserAnswer{Ref: "r", Outcome: contract.AskWithdrawn})
				} else {
					q.answered()
				}
			})
		})
	}
}

func TestTheAskerWithdrawsAQuestion(t *testing.T) {
	withInquiry(t, func(q inquiry) {
		q.deploy.Actor.Effects = []string{"withdraw"}
		var ids []string
		for range 2 {
			asked := q.deploy.Must("", kerneltest.Publish(contract.TopicUserAsk, contract.UserAsk{
				Text: "Deploy?", Kind: contract.AskApprove, Topic: "deploy.answered", ReplyTo: q.boris,
			}))
			ids = append(ids, asked[0].GetEventId())
		}
		q.telegram.Confirms(q.telegram.Take()) // of the other one nobody has read
		withdraws := func(id string) bool {
			done := q.deploy.Must("", &busv1.Effect{Kind: &busv1.Effect_Withdraw{Withdraw: &busv1.Withdraw{EventId: id}}})
			return !done[0].GetTooLate()
		}
		if !withdraws(ids[0]) || !withdraws(ids[1]) || withdraws(ids[0]) {
			t.Error("a question is withdrawn once")
		}
		q.answered(
			contract.UserAnswer{Question: "q1", Outcome: contract.AskWithdrawn},
			contract.UserAnswer{Question: "q2", Outcome: contract.AskWithdrawn},
		)
		q.telegram.Says("boris", "/approve q1")
		var said []string
		for _, m := range q.telegram.Sends() {
			said = append(said, m.Text)
		}
		if all := strings.Join(
			said,
			"\n",
		); !strings.Contains(all, "Question q1 no longer needs an answer: Deploy?") ||
			!strings.Contains(all, "q1 is closed") {
			t.Errorf("Boris is told %q", said)
		}
	})
}

func TestQuestionsOfOneAskerAreLimited(t *testing.T) {
	withInquiry(t, func(q inquiry) {
		for i := range 51 {
			q.asks(contract.UserAsk{Ref: fmt.Sprint(i)})
		}
		q.answered(contract.UserAnswer{Ref: "50", Outcome: contract.AskWithdrawn})
		if n := len(q.cli.Sends()); n != 50 {
			t.Errorf("%d questions were asked", n)
		}
	})
}

func TestAQuestionIsAskedOnAnotherChannelWhenItsOwnIsGone(t *testing.T) {
	withInquiry(t, func(q inquiry) {
		q.cli.GoesOffline()
		q.asks(contract.UserAsk{})
		q.Wait(20 * time.Minute)
		q.Detours()
		q.shown(q.telegram, "[for cli] Deploy?")
		q.telegram.Says("anna", "yes")
		q.answered(contract.UserAnswer{Question: "q1", Outcome: contract.AskAnswered, Answer: "yes", By: "anna"})
		q.cli.IsBack()
		q.cli.IsSilent()
	})
}

func TestAQuestionThatCannotBeDeliveredIsWithdrawn(t *testing.T) {
	withInquiry(t, func(q inquiry) {
		q.cli.IsUnconfigured()
		q.asks(contract.UserAsk{ReplyTo: q.boris})
		q.telegram.Drops(q.telegram.Take(), "the bot was blocked")
		q.answered(contract.UserAnswer{Question: "q1", Outcome: contract.AskWithdrawn})
	})
}
