package discordchannel

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	dc "github.com/switchboard-run/switchboard/extensions/discordchannel/discordtest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// In a server only what is for the bot is received; a thread is one of its channel.
func TestServersAndThreads(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	s.Inject(dc.Incoming{From: anna, Channel: general, Text: "hello everybody"})
	s.Inject(dc.Incoming{From: anna, Channel: general, Text: dc.Mention + ", what about <@" + boris + "> <:cat:123456789>?"})
	s.Inject(dc.Incoming{From: boris, Channel: thread, Text: "ask " + dc.Mention + " for it"})
	s.Inject(dc.Incoming{From: boris, Channel: thread, Text: dc.Mention})
	got := k.AwaitReceived(3)
	want := []string{
		general + "/ Anna: what about @boris :cat:?", general + "/" + thread + " boris: ask for it",
		general + "/" + thread + " boris: @" + dc.BotName,
	}
	if !slices.Equal(texts(got), want) {
		t.Errorf("received %q, want %q", texts(got), want)
	}
	if !got[0].Group || got[0].GroupName != "#general" || got[1].GroupName != "#general" {
		t.Errorf("received %+v", got)
	}
	m := send(general, "in the thread")
	m.Thread, m.ReplyTo = thread, got[1].MessageID
	k.Send(m).MustAck(t)
	if answer := awaitMessage(t, s, thread, 1); answer.ReplyTo != got[1].MessageID {
		t.Errorf("answered with %+v", answer)
	}
}

func TestRepliesForwardsEditsAndReactions(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	first := s.Say(anna, "one")
	k.AwaitReceived(1)
	k.Send(send(dc.DM(anna), "two")).MustAck(t)
	answer := awaitMessage(t, s, dc.DM(anna), 1)

	s.Inject(dc.Incoming{From: anna, Text: "to myself", ReplyTo: first.ID})
	s.Inject(dc.Incoming{From: anna, Text: "to you", ReplyTo: answer.ID})
	s.Inject(dc.Incoming{From: anna, Forward: "somebody else's <@" + boris + ">"})
	s.Unfurl(dc.DM(anna), first.ID)
	s.Edit(dc.DM(anna), first.ID, "one, changed")
	s.React(dc.DM(anna), answer.ID, anna, "👍")
	s.React(dc.DM(anna), first.ID, anna, "👎") // not the bot's
	s.Say(anna, "end")
	got := k.AwaitReceived(7)[1:]
	if q := got[0].Quote; q == nil || q.MessageID != first.ID || q.Sender != "Anna" || q.Text != "one" {
		t.Errorf("quote %+v", q)
	}
	if q := got[1].Quote; q == nil || q.MessageID != dc.DM(anna)+"/"+answer.ID || q.Sender != "" || q.Text != "two" {
		t.Errorf("quote %+v", q)
	}
	if got[2].ForwardedFrom == "" || !strings.HasPrefix(got[2].Text, "somebody else's") || got[2].Quote != nil {
		t.Errorf("forwarded %+v", got[2])
	}
	if got[3].Text != "one, changed" || !got[3].Edited || got[3].MessageID != first.ID {
		t.Errorf("edited %+v", got[3])
	}
	if r := got[4]; !r.Reaction || r.Text != "👍" || r.Quote == nil || r.Quote.Text != "two" || r.UserName != "Anna" {
		t.Errorf("reaction %+v, quote %+v", r, r.Quote)
	}
	if got[5].Text != "end" {
		t.Errorf("received %q", texts(got))
	}
}

// A reply to the bot needs no mention.
func TestRepliesInAServer(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	s.Inject(dc.Incoming{From: anna, Channel: general, Text: dc.Mention + " one"})
	k.AwaitReceived(1)
	k.Send(send(general, "two")).MustAck(t)
	answer := awaitMessage(t, s, general, 1)
	s.Inject(dc.Incoming{From: boris, Channel: general, Text: "three", ReplyTo: answer.ID, Silent: true})
	if got := k.AwaitReceived(2)[1]; got.Text != "three" || got.Quote == nil {
		t.Errorf("received %+v", got)
	}
}

// A press is stored, then answered, and the buttons go; a second press is a message, too.
func TestButtons(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	m := send(general, "Send it?")
	m.Actions = []contract.Action{{Label: "Yes", Command: "/approve q7"}, {Label: "Yes, always", Command: "/approve q7"}}
	k.Send(m).MustAck(t)
	asked := awaitMessage(t, s, general, 1)
	if len(asked.Buttons) != 2 || !s.Press(general, asked.ID, anna, "Yes") {
		t.Fatalf("asked %+v", asked)
	}
	got := k.AwaitReceived(1)[0]
	if got.Text != "/approve q7" || got.UserID != anna || got.ConversationID != general || !got.Group || got.Language != "ru" {
		t.Errorf("received %+v", got)
	}
	until(t, s, "the buttons to go", func() bool { return len(s.Messages(general)[0].Buttons) == 0 })
	s.PressID(general, asked.ID, boris, asked.Buttons[1].ID)
	k.AwaitReceived(2)
	until(t, s, "an answer to each press", func() bool { return s.Unanswered() == 0 })
}

// clockStopped has no interaction become too old, however slow the machine is.
func clockStopped() dc.Option {
	now := time.Now()
	return dc.WithClock(func() time.Time { return now })
}

// asks sends a question with buttons to a channel, and returns its message.
func asks(t *testing.T, s *dc.Server, k *sdktest.Kernel, channel string) dc.Message {
	t.Helper()
	m := send(channel, "Send it?")
	m.Actions = []contract.Action{{Label: "Yes", Command: "/approve q7"}}
	k.Send(m).MustAck(t)
	return awaitMessage(t, s, channel, 1)
}

// buttonsGo waits until the message has no buttons, and no press is stored.
func buttonsGo(t *testing.T, s *dc.Server, k *sdktest.Kernel, channel string) {
	t.Helper()
	until(t, s, "the buttons to go", func() bool { return len(s.Messages(channel)[0].Buttons) == 0 })
	k.WaitUntil("the press to be forgotten", func() bool { return len(k.Keys("press/")) == 0 })
}

// The buttons are for those who are admitted: a stranger's press doesn't take them away.
func TestAStrangerCannotPress(t *testing.T) {
	t.Parallel()
	s, k := runningWith(t, func(o *sdktest.Options) { o.AllowFrom = []string{anna} }, clockStopped())
	asked := asks(t, s, k, general)
	s.Press(general, asked.ID, boris, "Yes")
	until(t, s, "the answer", func() bool { return s.Unanswered() == 0 })
	if got := s.Ephemeral(); len(got) != 1 || got[0] != "You can't use these buttons, because I don't know you yet." {
		t.Errorf("the stranger is shown %q", got)
	}
	k.WaitUntil("the press to be forgotten", func() bool { return len(k.Keys("press/")) == 0 })
	if len(s.Messages(general)[0].Buttons) == 0 {
		t.Error("the buttons are gone")
	}
	s.Press(general, asked.ID, anna, "Yes")
	if got := k.AwaitReceived(1)[0]; got.UserID != anna {
		t.Errorf("received %+v", got)
	}
	buttonsGo(t, s, k, general)
}

// The buttons go although the process ends before it removed them.
func TestButtonsGoAfterARestart(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	s.Say(anna, "hello")
	asked := asks(t, s, k, dc.DM(anna))
	s.Fail("callback", 1, dc.Fault{Hang: true})
	s.Press(dc.DM(anna), asked.ID, anna, "Yes")
	k.AwaitReceived(2)
	until(t, s, "the removal", func() bool { return s.Calls("callback") == 1 })
	k.Lose()
	s.Heal()
	k.Restart(New())
	buttonsGo(t, s, k, dc.DM(anna))
	if got := k.Received(); len(got) != 2 {
		t.Errorf("received %+v", got)
	}
}

// A press in a channel that waits for a file removes the buttons when it is published.
func TestAPressWaitsForFiles(t *testing.T) {
	t.Parallel()
	s, k := running(t, clockStopped())
	s.Say(anna, "hello")
	asked := asks(t, s, k, dc.DM(anna))
	s.Fail("file", 2, dc.Fault{Hang: true})
	s.Inject(dc.Incoming{From: anna, Text: "look", Files: []dc.File{png}})
	k.WaitUntil("the file to wait", func() bool { return len(k.Keys("waiting/")) == 1 })
	s.Press(dc.DM(anna), asked.ID, anna, "Yes")
	until(t, s, "the answer", func() bool { return s.Unanswered() == 0 })
	if len(s.Messages(dc.DM(anna))[0].Buttons) == 0 {
		t.Error("the buttons are gone before the press is published")
	}
	s.Heal()
	if got := k.AwaitReceived(3)[2]; got.Text != "/approve q7" {
		t.Errorf("received %+v", got)
	}
	buttonsGo(t, s, k, dc.DM(anna))
}

// If the answer to a press is lost, the buttons go all the same.
func TestButtonsGoWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	s.Say(anna, "hello")
	m := send(dc.DM(anna), "Send it?")
	m.Actions = []contract.Action{{Label: "Yes", Command: "/approve q7"}}
	k.Send(m).MustAck(t)
	asked := awaitMessage(t, s, dc.DM(anna), 1)
	s.Fail("callback", 1, dc.Fault{Status: 404, Code: 10062})
	s.Press(dc.DM(anna), asked.ID, anna, "Yes")
	k.AwaitReceived(2)
	until(t, s, "the buttons to go", func() bool { return len(s.Messages(dc.DM(anna))[0].Buttons) == 0 })
}

func TestSlashCommands(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	until(t, s, "the menu", func() bool { return len(s.Commands()) > 0 })
	s.Command(general, anna, "stop", "")
	s.Command("", anna, "send", "tasks hello there")
	got := k.AwaitReceived(2)
	want := []string{general + "/ Anna: /stop", dc.DM(anna) + "/ Anna: /send tasks hello there"}
	if !slices.Equal(texts(got), want) {
		t.Errorf("received %q, want %q", texts(got), want)
	}
	until(t, s, "the answers", func() bool { return s.Unanswered() == 0 })
	// Only an interaction names the language of a person, which is remembered.
	k.Restart(New())
	s.Say(anna, "hello")
	if m := k.AwaitReceived(3)[2]; m.Language != "ru" {
		t.Errorf("received %+v", m)
	}
}

// Unknown events and messages with unknown parts disturb nothing.
func TestUnknownEvents(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	s.Emit("SOMETHING_NEW", map[string]any{"a": 1})
	s.Emit("MESSAGE_CREATE", "no object")
	s.Emit("INTERACTION_CREATE", []int{1})
	s.Inject(dc.Incoming{From: anna, Text: "odd", Extra: map[string]any{"attachments": "a text", "flags": "many"}})
	s.Inject(dc.Incoming{From: anna, Text: "joined", Extra: map[string]any{"type": 7}})
	s.Inject(dc.Incoming{From: anna, Text: "by a webhook", Extra: map[string]any{"webhook_id": "5"}})
	s.Say(anna, "plain")
	if got := k.AwaitReceived(2); got[0].Text != "odd" || got[1].Text != "plain" {
		t.Errorf("received %q", texts(got))
	}
	if r := k.Readiness(); r.GetState() != sdk.Ready {
		t.Errorf("readiness %v", r)
	}
}

// A commit that fails moves nothing: the events are stored later, once and in order.
func TestCommitsThatFail(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	k.FailCommits(2, contract.ErrFull)
	for _, text := range []string{"one", "two", "three"} {
		s.Say(anna, text)
	}
	k.AwaitReceived(3)
	s.Say(anna, "four")
	if got := k.AwaitReceived(4); got[0].Text != "one" || got[2].Text != "three" || got[3].Text != "four" {
		t.Errorf("received %q", texts(got))
	}
}
