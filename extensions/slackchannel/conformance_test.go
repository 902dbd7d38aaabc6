package slackchannel

import (
	"slices"
	"testing"

	st "github.com/switchboard-run/switchboard/extensions/slackchannel/slacktest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func TestConformance(t *testing.T) {
	s := st.Start(t)
	sdktest.Conformance(t, New, kernelOptions(s))
}

// The whole way over the real protocol: a message in, its acknowledgement, an answer out.
func TestOverTheProtocol(t *testing.T) {
	t.Parallel()
	s := st.Start(t)
	s.AddUser(st.User{ID: "UANNA", Name: "Anna", Locale: "ru-RU"})
	k := sdktest.Start(t, New(), kernelOptions(s))
	k.AwaitReadiness(sdk.Ready)
	ts := s.Say("UANNA", "hello <&> @switchboard")
	if got := k.AwaitReceived(1)[0]; got.Text != "hello <&>" || got.ConversationID != "DANNA" || got.UserName != "Anna" ||
		got.Language != "ru" || got.MessageID != ts || got.Group {
		t.Errorf("received %+v", got)
	}
	if err := s.WaitAcknowledged(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := k.Send(text("**hi** <!channel>")).MustAck(t).Receipt()
	if r.GetConversation() != "DANNA" || !slices.ContainsFunc(s.Messages("DANNA"), func(m st.Message) bool {
		return m.Said == "hi <!channel>" && m.Text == "hi &lt;!channel&gt;" && r.GetProviderId() == "DANNA/"+m.TS
	}) {
		t.Errorf("receipt %v, messages %+v", r, s.Messages("DANNA"))
	}
	// After a crash, with the same store, nothing is reported twice.
	k.Restart(New())
	k.AwaitReadiness(sdk.Ready)
	s.Say("UANNA", "again")
	if got := k.AwaitReceived(2); len(got) != 2 || got[1].Text != "again" {
		t.Errorf("received %+v", got)
	}
}
