package telegramchannel

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
	tg "github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/sdk"
)

func TestNoToken(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	k := newMemory()
	c, _ := begin(t, k, s, "")
	k.ready(t, "unconfigured: no bot token: create a bot with @BotFather")
	if _, err := c.Send(t.Context(), text(7, "x")); err == nil || !strings.Contains(err.Error(), TokenName) {
		t.Errorf("send: %v", err)
	}
	c.Draft(t.Context(), sdk.Draft{Conversation: "7"})
	if s.Connections() != 0 {
		t.Error("it connects without a token")
	}
}

func TestWrongToken(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"100001:AAnot-this-one", "not a token at all", "1:a/b"} {
		t.Run(token, func(t *testing.T) {
			t.Parallel()
			s := tg.Start(t)
			k := newMemory()
			begin(t, k, s, token)
			k.ready(t, "degraded: Telegram does not accept the bot token: get it from @BotFather")
		})
	}
}

func TestStartsWhileTelegramIsDown(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	k := newMemory()
	s.Down()
	begin(t, k, s, s.Token())
	k.ready(t, "offline: no connection to 127.0.0.1")
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	k.ready(t, "ready")
	s.Say(7, "hi")
	k.messages(t, 1)
}

func TestTelegramIsDownForAWhile(t *testing.T) {
	t.Parallel()
	c, s, k := running(t)
	sent := s.Say(7, "before")
	if err := s.WaitConfirmed(t.Context(), sent.Update); err != nil {
		t.Fatal(err)
	}
	s.Down()
	k.ready(t, "offline: no connection to 127.0.0.1")
	if _, err := c.Send(t.Context(), text(7, "x")); err == nil {
		t.Error("sent while down")
	}
	s.Say(7, "meanwhile")
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	k.ready(t, "ready")
	if got := k.messages(t, 2); got[1].Text != "meanwhile" {
		t.Errorf("messages %+v", got)
	}
	if _, err := c.Send(t.Context(), text(7, "x")); err != nil {
		t.Errorf("send after: %v", err)
	}
}

// One poll that is cut is nothing to report.
func TestABrokenPollChangesNothing(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	k := newMemory()
	s.Fail("getUpdates", 1, tg.Fault{Break: tg.BreakAfter})
	begin(t, k, s, s.Token())
	s.Say(7, "hi")
	k.messages(t, 1)
	k.mu.Lock()
	defer k.mu.Unlock()
	if i := slices.IndexFunc(k.readiness[1:], func(r string) bool { return !strings.HasPrefix(r, "ready") }); i >= 0 {
		t.Errorf("readiness: %q", k.readiness)
	}
}

func TestRevokedToken(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	k := newMemory()
	begin(t, k, s, s.Token())
	k.ready(t, "ready")
	s.Revoke("100001:AAother")
	s.Say(7, "ends the poll")
	k.ready(t, "degraded: Telegram does not accept the bot token")
}

func TestAnotherProgramPolls(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	k := newMemory()
	s.FailStatus("getUpdates", maxConflicts, 409)
	begin(t, k, s, s.Token())
	k.ready(t, "degraded: another program reads this bot's messages")
	s.Say(7, "hi")
	k.ready(t, "ready")
	k.messages(t, 1)
}

func TestWebhookIsRemoved(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	k := newMemory()
	s.Webhook("https://example.com/hook")
	begin(t, k, s, s.Token())
	s.Say(7, "hi")
	k.messages(t, 1)
	if s.Calls("deleteWebhook") != 1 {
		t.Errorf("deleteWebhook was called %d times", s.Calls("deleteWebhook"))
	}
}

// The menu follows the extensions that come and go, and comes through when
// Telegram refused it.
func TestCommandMenu(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	k := newMemory()
	begin(t, k, s, s.Token())
	for _, names := range [][]string{{"new", "stop"}, {"new", "stop", "schedules"}, {"new"}} {
		s.Fail("setMyCommands", 1, tg.Fault{Status: 500})
		k.offers(names...)
		if err := s.Wait(t.Context(), fmt.Sprintf("the menu %q", names), func() bool {
			var shown []string
			for _, c := range s.Commands("") {
				shown = append(shown, c.Command)
				if c.Description != "What "+c.Command+" does" {
					t.Errorf("/%s is described as %q", c.Command, c.Description)
				}
			}
			return slices.Equal(shown, names)
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// People see the menu in the language of their Telegram.
func TestCommandMenuInTheLanguageOfThePerson(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	k := newMemory()
	k.describes("stop", "stop everything here, or only the running answer")
	begin(t, k, s, s.Token())
	if err := s.Wait(t.Context(), "both menus", func() bool {
		english, russian := s.Commands("de"), s.Commands("ru")
		return len(english) == 1 && english[0].Description == "Stop everything here, or only the running answer" &&
			len(russian) == 1 && russian[0].Description == "Остановить здесь всё или только текущий ответ"
	}); err != nil {
		t.Fatal(err)
	}
}

func TestMenuHasOnlyValidCommands(t *testing.T) {
	t.Parallel()
	commands := []*kernelv1.Command{{Name: "long", Description: strings.Repeat("ä", 300)}, {Name: "bare"}}
	for i := range 200 {
		commands = append(commands, &kernelv1.Command{Name: fmt.Sprintf("c%d", i), Description: "x"})
	}
	menu := menuOf(commands, "")
	if len(menu) != 100 || menu[0].Description != "Ä"+strings.Repeat("ä", 255) || menu[1].Description != "Bare" {
		t.Errorf("%d commands, the first two %+v", len(menu), menu[:2])
	}
}

// Whatever fails, the token is in no log and no readiness.
func TestTokenStaysSecret(t *testing.T) {
	t.Parallel()
	s := tg.Start(t)
	k := newMemory()
	k.offers("new")
	s.Fail("getMe", 1, tg.Fault{Break: tg.BreakAfter})
	s.Fail("getMe", 1, tg.Fault{Status: 502, Body: "<html>" + s.Token()})
	s.Fail("setMyCommands", 1, tg.Fault{Status: 500})
	c, end := begin(t, k, s, s.Token())
	k.ready(t, "ready")
	s.AddChat(tg.Chat{ID: 7})
	for _, f := range []tg.Fault{
		{Break: tg.BreakAfter},
		{Break: tg.BreakInsideAnswer},
		{Status: 400, Description: "Bad Request: " + s.Token()},
		{Status: 418, Description: s.Token()},
		{Status: 404, Body: "no such page " + s.Token()},
	} {
		s.Fail("sendMessage", 4, f)
		for range 2 {
			if _, err := c.Send(t.Context(), text(7, "**x**")); err == nil || strings.Contains(err.Error(), s.Token()) {
				t.Errorf("%+v: %v", f, err)
			}
		}
		s.Heal()
	}
	s.Down()
	k.ready(t, "offline")
	if _, err := c.Send(t.Context(), text(7, "x")); err == nil || strings.Contains(err.Error(), s.Token()) {
		t.Errorf("down: %v", err)
	}
	end()
	k.mu.Lock()
	defer k.mu.Unlock()
	_, secret, _ := strings.Cut(s.Token(), ":")
	if all := k.logs.String() + strings.Join(k.readiness, "\n"); strings.Contains(all, secret) {
		t.Errorf("the token was revealed:\n%s", all)
	}
}

func TestTypingIsShownWhileATurnRuns(t *testing.T) {
	t.Parallel()
	c, s, _ := running(t)
	s.AddChat(tg.Chat{ID: 7})
	c.Draft(t.Context(), sdk.Draft{Conversation: "7", ID: "1"})
	if err := s.WaitActions(t.Context(), 7, 1); err != nil {
		t.Fatal(err)
	}
	if got := s.Actions(7)[0].Action; got != "typing" {
		t.Errorf("action %q", got)
	}
	if _, err := c.Send(t.Context(), text(7, "answer")); err != nil {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	yes := true
	for name, tc := range map[string]struct {
		c       Config
		env     string
		want    settings
		problem string
	}{
		"nothing": {Config{}, "", settings{url: DefaultURL, pollTimeout: 30 * time.Second, pace: true}, ""},
		"self-hosted": {Config{APIURL: "http://bots:8081/"}, "",
			settings{url: "http://bots:8081", pollTimeout: 30 * time.Second}, ""},
		"paced anyway": {Config{APIURL: "http://bots:8081", Pace: &yes}, "",
			settings{url: "http://bots:8081", pollTimeout: 30 * time.Second, pace: true}, ""},
		"environment": {Config{APIURL: DefaultURL}, "http://localhost:1",
			settings{url: "http://localhost:1", pollTimeout: 30 * time.Second}, ""},
		"timeout": {Config{PollTimeout: "5s"}, "", settings{url: DefaultURL, pollTimeout: 5 * time.Second, pace: true},
			""},
		"no address":  {Config{APIURL: "bots"}, "", settings{}, "api_url"},
		"bad env":     {Config{}, "bots", settings{}, URLVariable},
		"no duration": {Config{PollTimeout: "soon"}, "", settings{}, "poll_timeout"},
		"too long":    {Config{PollTimeout: "5m"}, "", settings{}, "50s"},
	} {
		got, err := tc.c.settings(tc.env)
		if tc.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		tc.want.conflictPause, tc.want.menuInterval = defaultConflictPause, defaultMenuInterval
		tc.want.files = defaultFileTimes
		if err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
