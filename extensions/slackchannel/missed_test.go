package slackchannel

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	st "github.com/switchboard-run/switchboard/extensions/slackchannel/slacktest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// While nothing is connected Slack gives its events up. What people have written is read
// when the channel is back: once, in order, with its threads, files and edits.
func TestWhatWasWrittenWhileNothingWasConnected(t *testing.T) {
	t.Parallel()
	const user, office = "UANNA", "COFFICE"
	s := st.Start(t)
	s.AddUser(st.User{ID: user, Name: "Anna"})
	s.AddConversation(office, st.Channel, "office")
	at := newExtension(func(t *times) { t.tolerated = 0 })
	k := sdktest.Start(t, at, kernelOptions(s))
	k.AwaitReadiness(sdk.Ready)
	first := s.Say(user, "first")
	known := s.Inject(st.Incoming{User: user, Channel: office, Text: "@switchboard hello"})
	k.AwaitReceived(2)
	if err := s.WaitAcknowledged(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.WaitFor("the note of the connection", func() bool { return len(k.Keys("connected/")) == 1 })
	own := k.Send(contract.ChannelSend{Text: "Shall I?", Conversation: "DANNA", Kind: contract.SendReply}).
		MustAck(t).Receipt().GetProviderId()
	_, ownTS, _ := strings.Cut(own, "/")

	k.Stop()
	for i := range 250 { // more than a page
		s.Say(user, fmt.Sprintf("missed %d", i))
	}
	s.Inject(st.Incoming{User: user, Channel: office, Text: "not for the assistant"})
	asked := s.Inject(st.Incoming{User: user, Channel: office, Text: "@switchboard a new thread"})
	s.Inject(st.Incoming{User: user, Channel: office, Thread: asked, Text: "more of it"})
	s.Inject(st.Incoming{User: user, Channel: office, Thread: known, Text: "in the known thread"})
	s.Inject(st.Incoming{User: user, Thread: ownTS, Text: "yes, please"})
	s.Inject(st.Incoming{User: user, Text: "with a file", Files: []st.File{{Name: "a.txt", Data: []byte("text")}}})
	s.Edit("DANNA", first, "first, corrected")
	s.GiveUp()
	want := 2 + 250 + 6

	s.Fail("conversations.history", 1, st.Fault{Status: 500})
	k.Restart(at)
	got := k.AwaitReceived(want)
	var texts []string
	for _, m := range got[2:] {
		texts = append(texts, m.Text)
	}
	var missed []string
	for i := range 250 {
		missed = append(missed, fmt.Sprintf("missed %d", i))
	}
	inOrder := slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return !strings.HasPrefix(t, "missed") })
	if !slices.Equal(inOrder, missed) {
		t.Errorf("missed messages are lost or out of order: %q", texts)
	}
	for text, fits := range map[string]func(contract.UserMessage) bool{
		"a new thread":        func(m contract.UserMessage) bool { return m.ThreadID == asked && m.Group },
		"more of it":          func(m contract.UserMessage) bool { return m.ThreadID == asked },
		"in the known thread": func(m contract.UserMessage) bool { return m.ThreadID == known },
		"yes, please":         func(m contract.UserMessage) bool { return m.Quote != nil && m.Quote.MessageID == own },
		"with a file":         func(m contract.UserMessage) bool { return len(m.Attachments) == 1 && m.Attachments[0].Blob != "" },
		"first, corrected":    func(m contract.UserMessage) bool { return m.Edited },
	} {
		i := slices.IndexFunc(got, func(m contract.UserMessage) bool { return m.Text == text })
		if i < 0 || !fits(got[i]) {
			t.Errorf("%q is reported as %+v", text, got[max(i, 0)])
		}
	}

	// Once more, with nothing new: nothing is reported twice.
	k.Restart(at)
	k.AwaitReadiness(sdk.Ready)
	s.Say(user, "the last one")
	if got := k.AwaitReceived(want + 1); len(got) != want+1 || got[want].Text != "the last one" {
		t.Errorf("%d messages are reported, want %d; the last is %q", len(got), want+1, got[len(got)-1].Text)
	}
}

// A short break is bridged by Slack's own repetitions: no history is read.
func TestAShortBreakReadsNoHistory(t *testing.T) {
	t.Parallel()
	s := st.Start(t)
	s.AddUser(st.User{ID: "UANNA", Name: "Anna"})
	k := sdktest.Start(t, newExtension(func(*times) {}), kernelOptions(s))
	k.AwaitReadiness(sdk.Ready)
	s.Say("UANNA", "one")
	k.AwaitReceived(1)
	s.Break()
	s.Say("UANNA", "two")
	k.AwaitReceived(2)
	if n := s.Calls("users.conversations"); n != 0 {
		t.Errorf("the conversations are listed %d times", n)
	}
	if at := time.Unix(storedAttendance(k), 0); time.Since(at) > time.Hour {
		t.Errorf("noted is %s", at)
	}
}

func storedAttendance(k *sdktest.Kernel) int64 {
	var a attendance
	k.WaitFor("the note of the connection", func() bool { return len(k.Keys("connected/")) == 1 })
	k.Stored(k.Keys("connected/")[0], &a)
	return a.At
}
