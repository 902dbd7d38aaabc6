package discordchannel

import (
	"testing"

	dc "github.com/switchboard-run/switchboard/extensions/discordchannel/discordtest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func TestConformance(t *testing.T) {
	s := dc.Start(t)
	sdktest.Conformance(t, New, optionsOf(s))
}

// The whole way over the real protocol: a message in, its position with it, an answer out.
func TestOverTheProtocol(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	s.Say(anna, "hello")
	if got := k.AwaitReceived(1)[0]; got.Text != "hello" || got.UserID != anna || got.UserName != "Anna" ||
		got.ConversationID != dc.DM(anna) || got.Group {
		t.Errorf("received %+v", got)
	}
	var p position
	if k.Stored("position/"+dc.BotID, &p); p.Seq != 3 || p.Session == "" { // READY, GUILD_CREATE, the message
		t.Errorf("position %+v", p)
	}
	r := k.Send(send(dc.DM(anna), "**hi**")).MustAck(t).Receipt()
	if m := awaitMessage(t, s, dc.DM(anna), 1); m.Text != "**hi**" || r.GetProviderId() != dc.DM(anna)+"/"+m.ID {
		t.Errorf("receipt %v for %+v", r, m)
	}
	// Away, with the same store: what came in between is received, nothing twice.
	k.Stop()
	s.Say(anna, "are you there?")
	k.Restart(New())
	k.AwaitReadiness(sdk.Ready)
	s.Say(anna, "again")
	if got := k.AwaitReceived(3); len(got) != 3 || got[1].Text != "are you there?" || got[2].Text != "again" {
		t.Errorf("received %q", texts(got))
	}
	if n := s.Identifies(); n != 1 {
		t.Errorf("%d sessions, want one that was resumed", n)
	}
}
