package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

var token = regexp.MustCompile(`<\w+>`)

// echo is a model that answers with the tokens that it has not answered yet.
func echo(r openaitest.Request) openaitest.Answer {
	var waiting []string
	for _, m := range r.Messages {
		switch {
		case m.Role == "user":
			waiting = append(waiting, token.FindAllString(m.Content.Text, -1)...)
		case m.Role == "assistant" && len(m.ToolCalls) == 0:
			waiting = nil
		}
	}
	return openaitest.Say("You said " + strings.Join(waiting, " "))
}

func TestExtensionKilledInMidSendSendsAgainWithAMark(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.start()
	w.telegramReady()
	w.telegram.Fail("sendMessage", 1, telegramtest.Fault{Hang: true})
	p := w.attach()
	p.say(`send "dinner is ready" to Telegram`)
	if err := w.telegram.WaitCalls(w.ctx(), "sendMessage", 1); err != nil {
		t.Fatal(err)
	}
	kill(w.extensionProcess("telegram_channel"), syscall.SIGKILL)
	if got := w.told(anna, 1).Text; !strings.HasPrefix(got, contract.RepeatMark) ||
		!strings.Contains(got, "dinner is ready") {
		t.Errorf("Telegram shows %q", got)
	}
	// The terminal's socket went with the process; the outcome comes to the next
	// one, unless it took so long that the first one was told to wait.
	again := w.attach()
	w.eventually("the outcome at a terminal", func() bool {
		return strings.Contains(strings.Join(append(p.texts(), again.texts()...), "\n"), "Telegram")
	})
	w.settled()
	if all := w.texts(anna); len(all) != 1 {
		t.Errorf("Telegram has %q", all)
	}
}

func TestSendWhoseAnswerIsLostIsSentAgainWithAMark(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.start()
	w.telegramReady()
	w.telegram.Fail("sendMessage", 1, telegramtest.Fault{Break: telegramtest.BreakAfter})
	w.attach().say(`send "dinner is ready" to Telegram`)
	w.told(anna, 2)
	w.settled()
	all := w.texts(anna)
	if len(all) != 2 || strings.HasPrefix(all[0], contract.RepeatMark) || !strings.HasPrefix(all[1], contract.RepeatMark) {
		t.Errorf("Telegram has %q", all)
	}
}

func TestKernelKilledWithAHundredQueuedMessagesAnswersThemAll(t *testing.T) {
	t.Parallel()
	const chats, each = 20, 5
	w := newWorld(t, strangers(), withModel)
	w.config(`channels: {telegram_channel: {allow_from: ["*"]}}`)
	gate := make(chan struct{})
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		a := echo(r)
		a.Gate = gate
		return a
	})
	w.start()
	w.telegramReady()
	for i := range each {
		for c := range chats {
			w.telegram.Say(int64(5000+c), fmt.Sprintf("message <c%dm%d>", c, i))
		}
	}
	w.eventually("all messages", func() bool { return w.count("user.message") == chats*each })
	// While they wait for the model, while answers are being sent, and while it
	// is all over again.
	w.restart()
	close(gate)
	if err := w.telegram.WaitAccepted(w.ctx(), chats/2); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.named(chats, each)
	w.settled()
	for c := range chats {
		seen := map[string]int{}
		for _, text := range w.texts(int64(5000 + c)) {
			if strings.HasPrefix(text, contract.RepeatMark) {
				continue
			}
			for _, answered := range token.FindAllString(text, -1) {
				if !strings.HasPrefix(answered, fmt.Sprintf("<c%dm", c)) {
					t.Errorf("chat %d reads %q", c, text)
				}
				if seen[answered]++; seen[answered] > 1 {
					t.Errorf("%s was answered twice without a mark: %q", answered, w.texts(int64(5000+c)))
				}
			}
		}
	}
	if dead := w.dead(); len(dead) != 0 {
		t.Errorf("dead letters: %q", dead)
	}
}

func TestReplyGoesToItsConversationThoughAnotherWroteLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	gate := make(chan struct{})
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		a := echo(r)
		if strings.Contains(a.Text, "<first>") {
			a.Gate = gate
		}
		return a
	})
	w.start()
	w.telegramReady()
	p := w.attach()
	w.telegram.Say(anna, "<first>")
	w.eventually("the first message to reach the model", func() bool { return w.model.Total() == 1 })
	w.telegram.Say(boris, "<second>")
	if got := w.told(boris, 1).Text; got != "You said <second>" {
		t.Errorf("the second person reads %q", got)
	}
	if got := p.ask("<third>"); got != "You said <third>" {
		t.Errorf("the terminal shows %q", got)
	}
	close(gate)
	if got := w.told(anna, 1).Text; got != "You said <first>" {
		t.Errorf("the first person reads %q", got)
	}
	w.settled()
	if a, b, c := len(w.texts(anna)), len(w.texts(boris)), len(p.texts()); a+b+c != 3 {
		t.Errorf("messages: %d, %d, %d", a, b, c)
	}
}

func TestLongTextIsSplitOutsideOfCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	var code strings.Builder
	for i := range 300 {
		fmt.Fprintf(&code, "fmt.Println(%d) // и это тоже 🫖\n", i)
	}
	w.model.Queue(openaitest.Say("Before.\n\n```go\n" + code.String() + "```\n\nAfter."))
	w.start()
	w.telegramReady()
	w.telegram.Say(anna, "show me a program")
	w.eventually("the end of the answer", func() bool {
		return strings.Contains(strings.Join(w.texts(anna), ""), "After.")
	})
	w.settled()
	var got strings.Builder
	messages := w.telegram.Messages(anna)
	if len(messages) < 3 {
		t.Errorf("%d messages", len(messages))
	}
	for i, m := range messages {
		if strings.Contains(m.Text, "```") {
			t.Errorf("message %d shows a fence: %q", i, m.Text)
		}
		units := utf16Of(m.Text)
		for _, e := range m.Entities {
			if e.Type == "pre" {
				got.WriteString(strings.TrimRight(stringOf(units[e.Offset:e.Offset+e.Length]), "\n") + "\n")
			}
		}
	}
	if got.String() != code.String() {
		t.Errorf("the code became:\n%s", got.String())
	}
}

func TestChatThatTelegramSlowsDownHoldsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(echo)
	w.start()
	w.telegramReady()
	w.telegram.Fail("sendMessage", 1000, telegramtest.Fault{Chat: anna, Status: 429, RetryAfter: 3})
	w.telegram.Say(anna, "<slow>")
	if _, err := w.telegram.WaitRefused(w.ctx(), 1); err != nil {
		t.Fatal(err)
	}
	w.telegram.Say(boris, "<fast>")
	w.told(boris, 1) // however long Anna's chat is slowed down
	w.telegram.Heal()
	slow := w.told(anna, 1)
	tried := w.telegram.Refused()
	for i, r := range tried {
		next := slow.At
		if i+1 < len(tried) {
			next = tried[i+1].At
		}
		if waited := next.Sub(r.At); waited.Seconds() < 3 {
			t.Errorf("it was tried again after %s", waited)
		}
	}
	if slow.Text != "You said <slow>" {
		t.Errorf("the slowed chat reads %q", slow.Text)
	}
}

func TestTokenIsReplacedWhileRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	delete(w.env, "TELEGRAM_BOT_TOKEN")
	w.model.Handle(echo)
	secret := func(token string) { w.write("TELEGRAM_BOT_TOKEN="+token+"\n", 0o600, "secrets.env") }
	w.start()
	c := w.control()
	if e := w.state(c, "telegram_channel", "active"); e.Readiness != "unconfigured" {
		t.Errorf("without a token it is %+v", e)
	}
	secret(w.telegram.Token())
	w.telegramReady()
	w.telegram.Say(anna, "<one>")
	w.told(anna, 1)

	// The token is revoked: the bot is the same, and so is its cursor.
	w.telegram.Revoke("100001:AAanotherTokenOfTheSameBotForLoopback")
	w.telegram.Say(anna, "<two>")
	w.eventually("the channel to complain about its token", func() bool {
		e := w.extension(c, "telegram_channel")
		return e.Readiness == "degraded" && strings.Contains(e.Detail, "token")
	})
	secret(w.telegram.Token())
	if got := w.told(anna, 2).Text; got != "You said <two>" {
		t.Errorf("after the new token: %q", got)
	}

	// Another bot, whose updates have lower numbers than those seen so far.
	w.telegram.SwitchBot("300000:AAanotherBotWithLowerNumbersOfUpdates00", "another_test_bot")
	secret(w.telegram.Token())
	w.telegram.Say(anna, "<three>")
	if got := w.told(anna, 3).Text; got != "You said <three>" {
		t.Errorf("with another bot: %q", got)
	}
	w.settled()
	if n := len(w.texts(anna)); n != 3 {
		t.Errorf("Telegram has %q", w.texts(anna))
	}
}

func TestDuplicateUpdateIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(echo)
	w.start()
	w.telegramReady()
	w.telegram.InjectTwice(telegramtest.Incoming{From: telegramtest.User{ID: anna}, Text: "<once>"})
	w.told(anna, 1)
	w.telegram.Say(anna, "<after>")
	w.told(anna, 2)
	w.settled()
	if all := w.texts(anna); len(all) != 2 || all[0] != "You said <once>" || all[1] != "You said <after>" {
		t.Errorf("Telegram has %q", all)
	}
}

func TestEditReplacesTheTextBeforeItsTurnAndIsNotedAfterwards(t *testing.T) {
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
	from := telegramtest.User{ID: anna, FirstName: "Anna"}
	first := w.telegram.Inject(telegramtest.Incoming{From: from, Text: "<one>"})
	w.eventually("the first message to reach the model", func() bool { return w.model.Total() == 1 })
	second := w.telegram.Inject(telegramtest.Incoming{From: from, Text: "<two>"})
	w.telegram.Inject(telegramtest.Incoming{From: from, Text: "<deux>", Edits: second.Message})
	w.eventually("the edit", func() bool { return w.count("user.message") == 3 })
	close(gate)
	if got := w.told(anna, 2).Text; got != "You said <deux>" {
		t.Errorf("the edited message was answered: %q", got)
	}
	w.telegram.Inject(telegramtest.Incoming{From: from, Text: "<uno>", Edits: first.Message})
	w.eventually("the late edit", func() bool { return w.count("user.message") == 4 })
	w.settled()
	w.telegram.Say(anna, "<three>")
	w.told(anna, 3)
	last := w.model.Requests()[w.model.Total()-1]
	var text strings.Builder
	for _, m := range last.Messages[1:] {
		fmt.Fprintf(&text, "%s: %s\n", m.Role, m.Content.Text)
	}
	if text := text.String(); !strings.Contains(text, "edited") || !strings.Contains(text, "<uno>") {
		t.Errorf("the model was not told of the edit:\n%s", text)
	}
	if n := len(w.texts(anna)); n != 3 {
		t.Errorf("Telegram has %q", w.texts(anna))
	}
}
