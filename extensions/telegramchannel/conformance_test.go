package telegramchannel

import (
	"fmt"
	"slices"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	tg "github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

const manifest = "../../manifests/telegram_channel.yaml"

func TestConformance(t *testing.T) {
	s := tg.Start(t)
	sdktest.Conformance(t, New, sdktest.Options{
		Manifest: manifest,
		Config:   Config{APIURL: s.URL()},
		Secrets:  map[string]string{TokenName: s.Token()},
	})
}

// The whole way over the real protocol: a message in, its cursor with it, an answer out.
func TestOverTheProtocol(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	k := sdktest.Start(t, New(), sdktest.Options{
		Manifest: manifest,
		Config:   Config{APIURL: s.URL()},
		Secrets:  map[string]string{TokenName: s.Token()},
	})
	k.AwaitReadiness(sdk.Ready)
	sent := s.Say(7, "hello")
	if got := k.AwaitReceived(1); got[0].Text != "hello" || got[0].ConversationID != "7" {
		t.Errorf("received %+v", got)
	}
	var c cursor
	if k.Stored("cursor/100001", &c); c.Next != sent.Update+1 {
		t.Errorf("cursor %+v, want %d", c, sent.Update+1)
	}
	r := k.Send(sendOf(text(7, "**hi**"))).MustAck(t).Receipt()
	if r.GetConversation() != "7" || !slices.ContainsFunc(s.Messages(7), func(m tg.Message) bool {
		return m.Text == "hi" && r.GetProviderId() == fmt.Sprintf("7/%d", m.ID)
	}) {
		t.Errorf("receipt %v", r)
	}
	// After a crash, with the same store, nothing is reported twice.
	k.Restart(New())
	k.AwaitReadiness(sdk.Ready)
	s.Say(7, "again")
	if got := k.AwaitReceived(2); len(got) != 2 || got[1].Text != "again" {
		t.Errorf("received %+v", got)
	}
}

// A notice of an extension with a place, by way of the kernel and the channel's manifest.
func TestAPlaceThroughTheKernel(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	s.AddChat(tg.Chat{ID: 7})
	k := sdktest.Start(t, New(), sdktest.Options{
		Manifest:  manifest,
		Config:    Config{APIURL: s.URL()},
		Secrets:   map[string]string{TokenName: s.Token()},
		AllowFrom: []string{"7"},
	})
	k.AwaitReadiness(sdk.Ready)
	k.Publish("lab", contract.TopicUserNotify, contract.UserNotify{
		Text: "Meet Boris", ChannelID: ID,
		Attachments: []contract.Attachment{{Kind: contract.KindLocation, Name: "52.52, 13.4"}},
	})
	if err := s.Wait(t.Context(), "the place", func() bool { return len(s.Messages(7)) == 2 }); err != nil {
		t.Fatal(err)
	}
	if all := s.Messages(7); all[0].Text != "Meet Boris" || all[1].Media != "location" || all[1].Text != "52.52|13.4" {
		t.Errorf("the chat shows %+v", all)
	}
}
