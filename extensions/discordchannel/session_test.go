package discordchannel

import (
	"strings"
	"testing"
	"time"

	dc "github.com/switchboard-run/switchboard/extensions/discordchannel/discordtest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// However a connection ends, the session goes on, and what came in between is received
// once.
func TestSessionsAreResumed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*dc.Server){
		"asked for":       (*dc.Server).Reconnect,
		"broken":          (*dc.Server).DropConnections,
		"closed":          func(s *dc.Server) { s.CloseConnections(4000) },
		"too many writes": func(s *dc.Server) { s.CloseConnections(4008) },
		"down for a time": func(s *dc.Server) {
			s.Down()
			if err := s.Up(); err != nil {
				panic(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := running(t)
			s.Say(anna, "one")
			k.AwaitReceived(1)
			s.Hold(true) // the connection ends before this arrives
			s.Say(anna, "two")
			n := s.Connections()
			end(s)
			s.Hold(false)
			if err := s.WaitConnected(t.Context(), n+1); err != nil {
				t.Fatal(err)
			}
			s.Say(anna, "three")
			if got := k.AwaitReceived(3); len(got) != 3 || got[1].Text != "two" || got[2].Text != "three" {
				t.Errorf("received %q", texts(got))
			}
			if s.Identifies() != 1 {
				t.Errorf("%d sessions were begun, want 1", s.Identifies())
			}
		})
	}
}

// What a session that has ended missed is read from the histories, and nothing is
// received twice.
func TestSessionsThatHaveEnded(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*dc.Server){
		"invalid": (*dc.Server).InvalidateSessions,
		"timed out": func(s *dc.Server) {
			s.ForgetSessions()
			s.CloseConnections(4009)
		},
		"forgotten": func(s *dc.Server) {
			s.ForgetSessions()
			s.DropConnections()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := running(t)
			s.Say(anna, "one")
			s.Inject(dc.Incoming{From: anna, Channel: thread, Text: dc.Mention + " two"})
			k.AwaitReceived(2)
			s.Miss(dc.Incoming{From: anna, Text: "three"})
			s.Miss(dc.Incoming{From: anna, Channel: thread, Text: dc.Mention + " four"})
			s.Miss(dc.Incoming{From: anna, Channel: thread, Text: "not for the bot"})
			end(s)
			until(t, s, "another session", func() bool { return s.Identifies() == 2 && s.Connected() })
			s.Say(anna, "five")
			got := k.AwaitReceived(5)
			all := strings.Join(texts(got), "\n")
			for _, text := range []string{"three", general + "/" + thread + " Anna: four", "five"} {
				if len(got) != 5 || strings.Count(all, text) != 1 {
					t.Errorf("%q is not there once: %q", text, all)
				}
			}
			if strings.Index(all, "three") > strings.Index(all, "five") {
				t.Errorf("not in order: %q", all)
			}
		})
	}
}

// A session that ended while the channel was away.
func TestSessionThatEndedMeanwhile(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	s.Say(anna, "one")
	k.AwaitReceived(1)
	k.Stop()
	s.ForgetSessions()
	for range 250 { // of several pages
		s.Miss(dc.Incoming{From: anna, Text: "more"})
	}
	k.Restart(New())
	k.AwaitReadiness(sdk.Ready)
	s.Say(anna, "end")
	if got := k.AwaitReceived(252); len(got) != 252 || got[251].Text != "end" {
		t.Errorf("received %d messages", len(got))
	}
}

// The channel is stopped while it reads the histories: the rest is read by the next one.
func TestHistoriesAreReadToTheEnd(t *testing.T) {
	t.Parallel()
	s, k := running(t, dc.WithClock(func() time.Time { return time.Now().Add(-time.Hour) }))
	s.Say(anna, "one")
	s.Say(boris, "one")
	k.AwaitReceived(2)
	k.Stop()
	var p position
	k.Stored("position/"+dc.BotID, &p)
	p.At -= 2 * 60 * 60 // it has been away for two hours
	k.Put("position/"+dc.BotID, p)
	s.ForgetSessions()
	s.Miss(dc.Incoming{From: anna, Text: "two"})
	s.Miss(dc.Incoming{From: boris, Text: "two"})
	s.Fail("history", 1, dc.Fault{})
	s.Fail("history", 100, dc.Fault{Hang: true})
	k.Restart(New())
	k.AwaitReceived(3)
	if err := s.WaitCalls(t.Context(), "history", 2); err != nil {
		t.Fatal(err)
	}
	k.Stop()
	s.Heal()
	k.Restart(New())
	if got := k.AwaitReceived(4); len(got) != 4 || got[2].UserID == got[3].UserID {
		t.Errorf("received %q", texts(got))
	}
}

// Heartbeats carry the number of the last event that is stored, and a connection that
// does not answer them is replaced.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	s, k := running(t, dc.WithHeartbeats(50*time.Millisecond))
	s.Say(anna, "one")
	k.AwaitReceived(1)
	until(t, s, "a heartbeat after the message", func() bool { return s.Beat() == 3 })
	s.Emit("PRESENCE_UPDATE", map[string]any{})
	k.WaitUntil("the position after an event of no interest", func() bool {
		var p position
		k.Stored("position/"+dc.BotID, &p)
		return p.Seq == 4
	})
	n := s.Connections()
	s.Hold(true)
	if err := s.WaitConnected(t.Context(), n+1); err != nil {
		t.Fatal(err)
	}
	s.Say(anna, "two")
	if got := k.AwaitReceived(2); got[1].Text != "two" {
		t.Errorf("received %q", texts(got))
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	s.Revoke(dc.TokenOf("second"))
	r := k.AwaitReadiness(sdk.Degraded)
	if !strings.Contains(r.GetDetail(), "does not accept the bot token") {
		t.Errorf("readiness %v", r)
	}
	k.Configure(Config{APIURL: s.URL()}, map[string]string{TokenName: s.Token()})
	k.Restart(New())
	if r := k.AwaitReadiness(sdk.Ready); r.GetDetail() != "@"+dc.BotName {
		t.Errorf("readiness %v", r)
	}
	s.Say(anna, "hello")
	k.AwaitReceived(1)

	for token, want := range map[string]string{
		"": "no bot token", "not a token": "does not accept the bot token", dc.TokenOf("wrong"): "does not accept the bot token",
	} {
		k.Configure(Config{APIURL: s.URL()}, map[string]string{TokenName: token})
		k.Restart(New())
		k.WaitUntil("readiness: "+want, func() bool { return strings.Contains(k.Readiness().GetDetail(), want) })
		if text := k.Readiness().GetDetail(); token != "" && strings.Contains(text, token) {
			t.Errorf("the readiness has the token: %s", text)
		}
	}
}

// Without the intent for contents the channel works, and says what is missing.
func TestWithoutTheContentIntent(t *testing.T) {
	t.Parallel()
	s, k := running(t, dc.WithoutContentIntent())
	if text := k.Readiness().GetDetail(); !strings.HasPrefix(text, "@"+dc.BotName) || !strings.Contains(text, "Message Content Intent") {
		t.Errorf("readiness %q", text)
	}
	s.Say(anna, "one")
	s.Inject(dc.Incoming{From: anna, Channel: general, Text: dc.Mention + " two"})
	if got := k.AwaitReceived(2); got[0].Text != "one" || got[1].Text != "two" {
		t.Errorf("received %q", texts(got))
	}
}

func TestCodesThatEndSessionsForGood(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{4011: "sharding", 4013: "intents", 4010: "sharding"} {
		s := dc.Start(t)
		s.RefuseSessions(code)
		k := sdktest.Start(t, New(), optionsOf(s))
		if r := k.AwaitReadiness(sdk.Degraded); !strings.Contains(r.GetDetail(), want) {
			t.Errorf("%d: readiness %v", code, r)
		}
	}
}

// A bot that has begun too many sessions waits, because Discord would revoke its token.
func TestSessionsOfADayAreLimited(t *testing.T) {
	t.Parallel()
	s := dc.Start(t)
	s.AllowSessions(0)
	k := sdktest.Start(t, New(), optionsOf(s))
	k.WaitUntil("the wait", func() bool { return strings.Contains(k.Readiness().GetDetail(), "limits this bot") })
	if n := s.Identifies(); n != 0 {
		t.Errorf("%d sessions were begun", n)
	}
	s.AllowSessions(1)
	k.AwaitReadiness(sdk.Ready)
}

func TestNoConnection(t *testing.T) {
	t.Parallel()
	s := dc.Start(t)
	s.Down()
	k := sdktest.Start(t, New(), optionsOf(s))
	k.WaitUntil("no connection", func() bool { return strings.Contains(k.Readiness().GetDetail(), "no connection to") })
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	k.AwaitReadiness(sdk.Ready)
	s.Away(true) // the API answers
	k.AwaitReadiness(sdk.Offline)
	s.Away(false)
	k.AwaitReadiness(sdk.Ready)
}
