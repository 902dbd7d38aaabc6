package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// transcript is what a request tells the model, without its instructions.
func transcript(r openaitest.Request) string {
	var b strings.Builder
	for _, m := range r.Messages[1:] {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Content.Text)
	}
	return b.String()
}

func TestWhatWasSentFromElsewhereIsKnownWhereItArrived(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Queue(
		openaitest.CallTool(sendTool, map[string]string{"channel_id": "telegram_channel", "text": "Shall I buy tickets?"}),
		openaitest.Say("I have asked."),
	)
	w.start()
	w.telegramReady()
	p := w.attach()
	p.ask("ask me in Telegram about the tickets")
	w.told(anna, 1)
	w.settled()
	w.model.Queue(openaitest.Say("I will buy them."))
	w.telegram.Say(anna, "yes, please")
	w.told(anna, 2)
	last := transcript(w.model.Requests()[w.model.Total()-1])
	contains(t, "the request", last, "Shall I buy tickets?", "yes, please")
	if strings.Contains(last, "ask me in Telegram") {
		t.Errorf("two conversations share a history:\n%s", last)
	}
}

func TestConversationsDoNotMix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(echo)
	w.start()
	w.telegramReady()
	p, aside := w.attach(), w.attach(wire.Frame{New: true})
	forum := func(user int64, thread int, text string) {
		w.telegram.Inject(telegramtest.Incoming{
			Chat: telegramtest.Chat{ID: group, Type: telegramtest.Supergroup, Title: "Family", Forum: true}, Thread: thread,
			From: telegramtest.User{ID: user, FirstName: "Boris"}, Text: "@" + w.telegram.Bot().Username + " " + text,
		})
	}
	w.telegram.Say(anna, "<anna>")
	w.told(anna, 1)
	w.telegram.Say(boris, "<boris>")
	w.told(boris, 1)
	forum(boris, 7, "<seven>")
	w.told(group, 1)
	forum(boris, 8, "<eight>")
	w.told(group, 2)
	p.ask("<terminal>")
	aside.ask("<aside>")
	for _, r := range w.model.Requests() {
		if n := len(token.FindAllString(transcript(r), -1)); n != 1 {
			t.Errorf("a conversation knows of another one:\n%s", transcript(r))
		}
	}
	for i, m := range w.telegram.Messages(group) {
		if m.Thread != 7+i {
			t.Errorf("%q went to topic %d", m.Text, m.Thread)
		}
	}
	contains(t, "the request of the group", transcript(w.model.Requests()[2]), "Boris")
	if a, b := p.texts(), aside.texts(); len(a) != 1 || len(b) != 1 {
		t.Errorf("the terminals show %q and %q", a, b)
	}
}

func TestRequestsToAModelHoldNoIdsAndNoTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(echo)
	w.start()
	w.telegramReady()
	w.telegram.Inject(telegramtest.Incoming{
		Chat: telegramtest.Chat{ID: -987654321, Type: telegramtest.Group, Title: "Family"},
		From: telegramtest.User{ID: boris, FirstName: "Boris"},
		Text: "@" + w.telegram.Bot().Username + " <hello>",
	})
	w.told(-987654321, 1)
	handles := w.query(`SELECT handle FROM conversation`)
	for _, r := range w.model.Requests() {
		for _, secret := range append(handles, "987654321", fmt.Sprint(boris), w.telegram.Token()) {
			if strings.Contains(string(r.Raw), secret) {
				t.Errorf("the request holds %q", secret)
			}
		}
	}
}

func TestCommandsWorkWhileATurnRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	gate := make(chan struct{})
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		a := echo(r)
		a.Gate = gate
		return a
	})
	w.start()
	w.telegramReady()
	w.telegram.Say(anna, "<one>")
	w.eventually("the turn", func() bool { return w.model.Total() == 1 })
	for i, tt := range []struct{ command, told string }{
		{"/help", "/stop"},
		{"/status", "Telegram"},
		{"/agent", "orchestrator"},
		{"/nonsense", "no command /nonsense"},
		{"/stop", "Stopped"},
	} {
		w.telegram.Say(anna, tt.command)
		contains(t, tt.command, w.told(anna, i+1).Text, tt.told)
	}
	close(gate)
	w.telegram.Say(anna, "/new")
	w.told(anna, 6)
	w.telegram.Say(anna, "<two>")
	if got := w.told(anna, 7).Text; got != "You said <two>" {
		t.Errorf("after /new: %q", got)
	}
	if last := transcript(w.model.Requests()[w.model.Total()-1]); strings.Contains(last, "<one>") {
		t.Errorf("the new conversation knows of the old one:\n%s", last)
	}
	w.telegram.Say(anna, "/agent echo")
	w.told(anna, 8)
	w.telegram.Say(anna, "parrot")
	contains(t, "the other agent", w.told(anna, 9).Text, "parrot")
	w.settled()
	if n := len(w.texts(anna)); n != 9 {
		t.Errorf("Telegram has %q", w.texts(anna))
	}
}

func TestMessagesDuringATurnAreAnsweredInOrderAfterIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	gate := make(chan struct{})
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		a := echo(r)
		a.Gate = gate
		return a
	})
	w.start()
	w.telegramReady()
	w.telegram.Say(anna, "<one>")
	w.eventually("the turn", func() bool { return w.model.Total() == 1 })
	for _, text := range []string{"<two>", "<three>", "<four>"} {
		w.telegram.Say(anna, text)
	}
	w.eventually("all messages", func() bool { return w.count("user.message") == 4 })
	close(gate)
	w.told(anna, 2)
	w.settled()
	if got := w.texts(anna); len(got) != 2 || got[0] != "You said <one>" || got[1] != "You said <two> <three> <four>" {
		t.Errorf("Telegram has %q", got)
	}
}

func TestUnsupportedMediaIsToldSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.start()
	w.telegramReady()
	w.telegram.Inject(telegramtest.Incoming{From: telegramtest.User{ID: anna, FirstName: "Anna"}, Media: "poll"})
	contains(t, "the answer", w.told(anna, 1).Text, "poll")
}
