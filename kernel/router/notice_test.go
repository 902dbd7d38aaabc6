package router_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// scene is a terminal that is the default, Telegram chats with Anna, who is the owner, and
// Boris, and the handles of these.
type scene struct {
	*kerneltest.World
	cli, telegram *kerneltest.Channel
	orchestrator  *kerneltest.Agent
	anna, boris   string
}

func withScene(t *testing.T, play func(s scene)) {
	t.Helper()
	kerneltest.Run(t, func(w *kerneltest.World) {
		s := scene{World: w, cli: w.Channel("cli"), telegram: w.Channel("telegram"), orchestrator: w.Agent("orchestrator")}
		s.cli.Admits("*")
		s.telegram.Admits("anna", "boris")
		w.Know(func(s *directory.Snapshot) { s.DefaultChannel = "cli" })
		s.telegram.Says("anna", "hello")
		here := s.orchestrator.Hears("hello")
		here.Answers("")
		s.anna = here.Input.ReplyTo
		s.telegram.Says("boris", "hello")
		here = s.orchestrator.Hears("hello")
		here.Answers("")
		s.boris = here.Input.ReplyTo
		play(s)
	})
}

func (s scene) notifies(n contract.UserNotify) {
	if n.Text == "" {
		n.Text = "dinner"
	}
	s.Emits(contract.TopicUserNotify, n)
}

func TestWhereANoticeGoes(t *testing.T) {
	tests := []struct {
		name          string
		notice        contract.UserNotify
		toBoris       bool
		cli, telegram []string
	}{
		{"nothing is named: the default channel", contract.UserNotify{}, false, []string{": dinner"}, nil},
		{
			"a channel is named: the owner there",
			contract.UserNotify{ChannelID: "telegram"},
			false,
			nil,
			[]string{"anna: dinner"},
		},
		{"a conversation", contract.UserNotify{}, true, nil, []string{"boris: dinner"}},
		{
			"a conversation on the channel named",
			contract.UserNotify{ChannelID: "telegram"},
			true,
			nil,
			[]string{"boris: dinner"},
		},
		{
			"a conversation on another channel than the one named",
			contract.UserNotify{ChannelID: "cli"},
			true,
			[]string{": dinner"},
			nil,
		},
		{"a conversation that does not exist", contract.UserNotify{ReplyTo: "nowhere"}, false, []string{": dinner"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			withScene(t, func(s scene) {
				if test.toBoris {
					test.notice.ReplyTo = s.boris
				}
				s.notifies(test.notice)
				s.cli.Shows(test.cli...)
				s.telegram.Shows(test.telegram...)
				if dead := s.Dead(contract.TopicUserNotify); len(dead) != 0 {
					t.Errorf("dead letters: %q", dead)
				}
			})
		})
	}
}

func TestANoticeForAChannelThatDoesNotExist(t *testing.T) {
	withScene(t, func(s scene) {
		s.notifies(contract.UserNotify{ChannelID: "pigeon", ReplyTo: s.boris})
		s.cli.Shows(": [for pigeon] dinner") // not in some conversation
		s.telegram.IsSilent()
		if dead := s.Dead(contract.TopicUserNotify); len(dead) != 1 || !strings.Contains(dead[0], "pigeon") {
			t.Errorf("dead letters: %q", dead)
		}
	})
}

func TestANoticeThatSaysNothing(t *testing.T) {
	withScene(t, func(s scene) {
		s.notifies(contract.UserNotify{Text: "  "})
		s.cli.IsSilent()
		if dead := s.Dead(contract.TopicUserNotify); len(dead) != 1 {
			t.Errorf("dead letters: %q", dead)
		}
	})
}

func TestWithoutADefaultTheFirstReadyChannelHasIt(t *testing.T) {
	withScene(t, func(s scene) {
		s.Know(func(d *directory.Snapshot) { d.DefaultChannel = "" })
		s.notifies(contract.UserNotify{})
		s.cli.Shows(": dinner")
		s.cli.GoesOffline()
		s.notifies(contract.UserNotify{})
		s.telegram.Shows("anna: dinner")
	})
}

// Nobody named a channel, so there is no point in waiting for a certain one.
func TestWhenNoChannelIsReadyTheFirstThatIsHasIt(t *testing.T) {
	withScene(t, func(s scene) {
		s.Know(func(d *directory.Snapshot) { d.DefaultChannel = "" })
		s.cli.IsUnconfigured()
		s.telegram.GoesOffline()
		s.notifies(contract.UserNotify{})
		s.Wait(24 * time.Hour)
		s.Detours()
		s.Restart()
		s.cli.IsBack()
		s.Detours()
		s.cli.Shows(": dinner")
		s.telegram.IsBack()
		s.telegram.IsSilent()
	})
}

func TestWithoutAnyChannelANoticeIsKept(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "dinner"})
		if dead := w.Dead(contract.TopicUserNotify); len(dead) != 1 {
			t.Errorf("dead letters: %q", dead)
		}
		cli := w.Channel("cli")
		if n, err := w.Bus.Resubmit(w.Events(contract.TopicUserNotify)[0].GetId()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		cli.Shows(": dinner")
	})
}

func TestAHeldNoticeIsMovedOnceAfterItsTime(t *testing.T) {
	withScene(t, func(s scene) {
		s.telegram.GoesOffline()
		s.notifies(contract.UserNotify{ChannelID: "telegram"})
		s.Wait(14 * time.Minute)
		s.Detours()
		s.cli.IsSilent()
		s.Wait(2 * time.Minute)
		s.Detours()
		s.Detours()
		s.cli.Shows(": [for telegram] dinner")
		s.telegram.IsBack()
		s.telegram.IsSilent()
		s.Wait(time.Hour)
		s.Detours()
		s.cli.IsSilent()
	})
}

func TestANoticeThatIsBackInTimeIsNotMoved(t *testing.T) {
	withScene(t, func(s scene) {
		s.telegram.GoesOffline()
		s.notifies(contract.UserNotify{ChannelID: "telegram"})
		s.Wait(14 * time.Minute)
		s.telegram.IsBack()
		s.telegram.Shows("anna: dinner")
		s.Wait(2 * time.Minute)
		s.Detours()
		s.cli.IsSilent()
	})
}

func TestAReplyIsNeverMoved(t *testing.T) {
	withScene(t, func(s scene) {
		s.telegram.Says("anna", "private")
		turn := s.orchestrator.Hears("private")
		s.telegram.GoesOffline()
		turn.Answers("the private answer")
		// What stands behind it in the same conversation is moved all the same.
		s.notifies(contract.UserNotify{ChannelID: "telegram"})
		s.Wait(time.Hour)
		s.Detours()
		s.cli.Shows(": [for telegram] dinner")
		s.telegram.IsBack()
		s.telegram.Shows("anna: the private answer")
	})
}

func TestTheAnswerOfAJobIsMoved(t *testing.T) {
	withScene(t, func(s scene) {
		s.telegram.GoesOffline()
		s.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "go", ReplyTo: s.anna})
		s.orchestrator.Hears("go").Answers("gone")
		s.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "find", ReplyTo: s.boris})
		s.orchestrator.Hears("find").Answers("found")
		s.Wait(time.Hour)
		s.Detours()
		s.cli.Shows(": [for telegram] gone")
		s.telegram.IsBack()
		s.telegram.Shows("boris: found") // another person's goes to no other channel: the owner reads those
	})
}

// A notice does not go back to a channel that it came from.
func TestANoticeGoesThroughEachChannelOnce(t *testing.T) {
	withScene(t, func(s scene) {
		matrix := s.Channel("matrix")
		matrix.Admits("anna")
		matrix.GoesOffline()
		s.cli.GoesOffline() // so that it goes to Telegram first
		s.notifies(contract.UserNotify{ChannelID: "matrix"})
		s.Wait(time.Hour)
		s.Detours()
		matrix.IsBack()
		fails(s, s.telegram, "400")
		matrix.IsSilent()
		s.cli.IsBack()
		s.cli.Shows(": [for matrix] dinner")
		s.Wait(time.Hour)
		s.Detours()
		matrix.IsSilent()
		s.telegram.IsSilent()
	})
}

func TestALongNoticeIsMovedWhole(t *testing.T) {
	withScene(t, func(s scene) {
		s.telegram.Change(func(c *directory.Channel) { c.MaxLength = 30 })
		s.telegram.GoesOffline()
		s.notifies(contract.UserNotify{ChannelID: "telegram", Text: strings.Repeat("word ", 12)})
		s.Wait(time.Hour)
		for range 3 { // whoever stands in front, one after the other
			s.Detours()
		}
		s.cli.Shows(": [for telegram] word word word word word word", ": word word word word word word")
	})
}

// fails has a channel fail to send what waits until it is dead.
func fails(s scene, c *kerneltest.Channel, reason string) {
	s.T.Helper()
	for range 3 {
		c.Fails(c.Take(), reason)
		s.Wait(2 * time.Minute)
	}
}

func TestADeadNoticeTriesAnotherChannel(t *testing.T) {
	withScene(t, func(s scene) {
		s.notifies(contract.UserNotify{ChannelID: "telegram"})
		fails(s, s.telegram, "400 Bad Request")
		s.cli.Shows(": [for telegram] dinner")
		s.telegram.IsSilent()
	})
}

func TestOfADeadReplyTheOwnerIsToldThatButNotWhat(t *testing.T) {
	withScene(t, func(s scene) {
		s.telegram.Says("boris", "private")
		s.orchestrator.Hears("private").Answers("the private answer")
		fails(s, s.telegram, "403 Forbidden")
		told := s.cli.ShowsOne("couldn't be delivered", "Telegram", "403 Forbidden")
		if strings.Contains(told.Text, "private") {
			t.Errorf("the owner reads %q", told.Text)
		}
		s.telegram.IsSilent()
	})
}

// A person who blocks the bot is no problem of the channel: the owner is told there, once
// a day, and what was for that person goes nowhere else.
func TestAPersonWhoCannotBeReached(t *testing.T) {
	withScene(t, func(s scene) {
		s.Know(func(d *directory.Snapshot) { d.DefaultChannel = "telegram" })
		drops := func() {
			t.Helper()
			s.telegram.Drops(s.telegram.Take(), "bot was blocked by the user")
		}
		s.telegram.Says("boris", "private")
		s.orchestrator.Hears("private").Answers("the private answer")
		drops()
		told := s.telegram.ShowsOne("A message to boris on Telegram couldn't be delivered", "blocked by the user")
		if told.Conversation != "anna" || strings.Contains(told.Text, "private") {
			t.Errorf("the owner reads %+v", told)
		}
		s.orchestrator.HearsRecord("was not delivered", "has not seen it", "the private answer")
		s.orchestrator.HearsRecord("from outside this conversation") // in the owner's
		s.notifies(contract.UserNotify{ReplyTo: s.boris})
		drops()
		s.notifies(contract.UserNotify{ChannelID: "telegram"})
		s.telegram.Shows("anna: dinner") // as ever
		s.orchestrator.HearsRecord("dinner")
		s.Wait(25 * time.Hour)
		s.notifies(contract.UserNotify{ReplyTo: s.boris})
		drops()
		s.telegram.ShowsOne("A message to boris on Telegram couldn't be delivered")
		s.cli.IsSilent()
	})
}

// What the owner cannot be sent goes to another channel, and the agent is not told that
// it was said.
func TestAReplyToTheOwnerThatIsNotDelivered(t *testing.T) {
	withScene(t, func(s scene) {
		s.telegram.Says("anna", "hello")
		s.orchestrator.Hears("hello").Answers(strings.Repeat("long ", 100))
		s.telegram.Drops(s.telegram.Take(), "bot was blocked by the user")
		s.cli.ShowsOne("A message to Telegram couldn't be delivered")
		in := s.orchestrator.HearsRecord("was not delivered", "long long")
		if len(in.Text) > 400 {
			t.Errorf("the note has %d characters", len(in.Text))
		}
	})
}

// With one channel only, that one has to do: the next conversation may work.
func TestOfADeadReplyTheOwnerIsToldOnTheOnlyChannel(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna", "boris")
		telegram.Says("anna", "hello")
		orchestrator.Hears("hello").Answers("")
		telegram.Says("boris", "hello")
		orchestrator.Hears("hello").Answers("hi")
		s := scene{World: w}
		fails(s, telegram, "403 Forbidden")
		d := telegram.Take()
		if m := kerneltest.Decode[contract.ChannelSend](
			t,
			d.GetEvent(),
		); m.Conversation != "anna" ||
			!strings.Contains(m.Text, "couldn't be delivered") {
			t.Errorf("the owner is told %+v", m)
		}
		// If that fails as well, it is over.
		telegram.Fails(d, "503")
		w.Wait(2 * time.Minute)
		for range 2 {
			telegram.Fails(telegram.Take(), "503")
			w.Wait(2 * time.Minute)
		}
		telegram.IsSilent()
		if dead := w.Dead(contract.TopicChannelSend + "telegram"); len(dead) != 2 {
			t.Errorf("dead letters: %q", dead)
		}
	})
}

func TestTwoDeadChannelsDoNotPlayPingPong(t *testing.T) {
	withScene(t, func(s scene) {
		s.notifies(contract.UserNotify{ChannelID: "telegram"})
		fails(s, s.telegram, "400")
		fails(s, s.cli, "the terminal is broken")
		s.Wait(time.Hour)
		s.telegram.IsSilent()
		s.cli.IsSilent()
	})
}

// What died because nobody was there to have it goes to whoever is approved
// later.
func TestADeadSendWithoutARecipientIsSentAgainToTheOwner(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram := w.Channel("telegram")
		again := func(d *busv1.Delivery) {
			if n, err := w.Bus.Resubmit(d.GetEvent().GetId()); n != 1 || err != nil {
				t.Errorf("%d deliveries were resubmitted, want 1: %v", n, err)
			}
		}
		w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "dinner"})
		d := telegram.Take()
		telegram.Drops(d, "there is no default recipient")
		w.Settle()
		again(d) // unchanged, without an owner
		d = telegram.Take()
		telegram.Drops(d, "there is still no default recipient")
		w.Settle()
		telegram.Admits("anna")
		again(d)
		if m := telegram.ShowsOne("dinner"); m.Owner != "anna" {
			t.Errorf("it goes to %q", m.Owner)
		}
		if dead := w.Dead(d.GetEvent().GetTopic()); len(dead) != 0 {
			t.Errorf("dead letters: %q", dead)
		}
		if n, err := w.Bus.Resubmit(d.GetEvent().GetId()); !errors.Is(err, contract.ErrNotFound) {
			t.Errorf("a second time, %d deliveries were resubmitted: %v", n, err)
		}
		telegram.IsSilent()
	})
}

func TestAReplyThatIsTooOldDies(t *testing.T) {
	withScene(t, func(s scene) {
		s.telegram.Says("boris", "private")
		turn := s.orchestrator.Hears("private")
		s.telegram.Becomes(extensionv1.Readiness_STATE_DEGRADED, "slow")
		turn.Answers("the private answer")
		s.Wait(8 * 24 * time.Hour)
		s.telegram.IsBack()
		s.telegram.IsSilent()
		s.cli.ShowsOne("couldn't be delivered")
	})
}

func TestWhatWasSentFromElsewhereIsKnownInTheConversation(t *testing.T) {
	withScene(t, func(s scene) {
		s.notifies(contract.UserNotify{ChannelID: "telegram", Text: "Take the bread out!"})
		s.telegram.Shows("anna: Take the bread out!")
		record := s.orchestrator.HearsRecord("Take the bread out!", "from outside this conversation")
		if record.Sender != "switchboard" {
			t.Errorf("it is from %q", record.Sender)
		}
		s.orchestrator.HearsNothing() // once
		s.telegram.Says("anna", "which bread?")
		turn := s.orchestrator.Hears("which bread?")
		if rows := s.History(turn.Session()); !strings.Contains(strings.Join(rows, "|"), "Take the bread out!") {
			t.Errorf("the history is %q", rows)
		}
	})
}

// The conversation is the one that the receipt names, also if nobody was named.
func TestTheReceiptSaysWhereItWent(t *testing.T) {
	withScene(t, func(s scene) {
		s.notifies(contract.UserNotify{})
		d := s.cli.Take()
		s.cli.Acks(d, kerneltest.Receipt("r1", "window 3", ""))
		record := s.orchestrator.HearsRecord()
		if session := s.Session(
			"orchestrator",
			"chan:cli:window%203",
		); journal.SessionID(session.ID) != record.Session ||
			session.HistorySeq != 1 {
			t.Errorf("the record is in session %s, not in %+v", record.Session, session)
		}
	})
}

func TestASendFromItsOwnConversationIsNoNews(t *testing.T) {
	withScene(t, func(s scene) {
		s.telegram.Says("anna", "send it to me here")
		turn := s.orchestrator.Hears("send it to me here")
		result := turn.Calls(turn.Asks([2]string{"core/send_to_channel", `{"channel_id":"telegram","text":"it"}`})[0])
		s.telegram.Shows("anna: it")
		if r, err := result(); err != nil || !strings.Contains(r.GetContent(), "delivered") {
			t.Errorf("%v, %v", r, err)
		}
		turn.Answers("done")
		s.orchestrator.HearsNothing()
	})
}
