package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/internal/seed"
)

// answered checks that each of n messages to each chat was answered, none
// twice without a mark.
func (w *world) answered(chats, n int) {
	w.t.Helper()
	for c := range chats {
		chat := int64(5000 + c)
		unmarked, all := map[string]int{}, map[string]int{}
		for _, text := range w.texts(chat) {
			for _, id := range token.FindAllString(text, -1) {
				if all[id]++; !strings.HasPrefix(text, contract.RepeatMark) {
					unmarked[id]++
				}
			}
		}
		for i := range n {
			id := fmt.Sprintf("<c%dm%d>", c, i)
			if all[id] == 0 || unmarked[id] > 1 {
				w.t.Errorf("%s was answered %d times, %d times without a mark: %q", id, all[id], unmarked[id], w.texts(chat))
			}
		}
	}
}

// TestNothingIsLostWhateverIsKilled has people write, to turns that run already
// as well, while the kernel dies at commits that chance chooses, the channels, the
// agent, the model and the tools are killed in no particular order, and Telegram
// loses some requests.
func TestNothingIsLostWhateverIsKilled(t *testing.T) {
	t.Parallel()
	chats, each, crashes := 20, 5, 6
	if raceDetector || testing.Short() {
		chats, each, crashes = 8, 4, 3
	}
	random := seed.Rand(t)
	s := newShop(t, "processes: separate")
	s.leeway = leeway{telegram: true, shop: true, unknown: true, often: true}
	s.plan = func(token string) [][]openaitest.Call {
		if strings.HasSuffix(token, "2>") {
			return [][]openaitest.Call{{work("act", token, 0, "")},
				{openaitest.NewCall(sendTool, map[string]string{"channel_id": "shop", "text": "News of " + token})}}
		}
		return [][]openaitest.Call{{work("peek", token, 0, ""), work("act", token, 1, "")}, {work("act", token, 2, "")}}
	}
	var points []string
	for range crashes {
		points = append(points, fmt.Sprint([]string{"before ", "after "}[random.IntN(2)], 20+random.IntN(200)))
	}
	t.Logf("the kernels die %q", points)
	s.crashAt(points[0], points[1:]...)
	var tokens []string
	agents := 3 // what kills its agent too often is given up, and rightly so
	for i := range each {
		for c := range chats {
			tokens = append(tokens, fmt.Sprintf("<c%dm%d>", c, i))
			s.write(tokens[len(tokens)-1])
		}
		for range 3 {
			s.telegram.Fail("sendMessage", 1, []telegramtest.Fault{
				{Break: telegramtest.BreakBefore}, {Break: telegramtest.BreakAfter},
				{Status: 502, Body: "<html>Bad Gateway</html>"},
			}[random.IntN(3)])
			accepted := s.telegram.Accepted() + random.IntN(chats/4)
			s.reaches("more answers", func() bool { return s.telegram.Accepted() >= accepted || s.answeredAll(tokens) })
			victim := []string{"telegram_channel", "agent:keeper", "openai:openai", "probe shop"}[random.IntN(4)]
			if victim == "agent:keeper" {
				if agents--; agents < 0 {
					continue
				}
			}
			for _, p := range descendants(t, s.kernel.pid()) {
				if strings.Contains(p.command, victim) {
					kill(p, syscall.SIGKILL)
				}
			}
		}
	}
	s.telegram.Heal()
	s.over(tokens...)
	s.survived(tokens...)
}

func TestKernelStoppedInMidTurnGoesOnWhenItIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	gate := make(chan struct{})
	w.model.Queue(openaitest.CallTool("scheduler__list_schedules", `{}`), openaitest.Answer{Gate: gate})
	w.start()
	w.telegramReady()
	w.telegram.Say(anna, "what is on today?")
	w.eventually("the second request", func() bool { return w.model.Total() == 2 })
	w.stop()
	close(gate)
	w.model.Queue(openaitest.Say("Nothing."))
	w.start()
	if got := w.told(anna, 1).Text; got != "Nothing." {
		t.Errorf("Telegram has %q", got)
	}
	w.settled()
	if n := w.model.Total(); n != 3 || len(w.texts(anna)) != 1 {
		t.Errorf("the model was asked %d times, Telegram has %q", n, w.texts(anna))
	}
}

func TestKernelKilledWhileASendHangsSendsAgainWithAMark(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Queue(openaitest.Say("Hello."))
	w.start()
	w.telegramReady()
	w.telegram.Fail("sendMessage", 1, telegramtest.Fault{Hang: true})
	w.telegram.Say(anna, "hello")
	if err := w.telegram.WaitCalls(w.ctx(), "sendMessage", 1); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.settled()
	if got := w.texts(anna); len(got) != 1 || got[0] != contract.RepeatMark+"Hello." {
		t.Errorf("Telegram has %q", got)
	}
	if n := w.model.Total(); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestUncertainSendIsHeldIfTheConfigurationSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.config(`channels: {telegram_channel: {allow_from: ["1001"], uncertain: hold}}`)
	w.model.Handle(echo)
	w.start()
	w.telegramReady()
	p := w.attach()
	w.telegram.Fail("sendMessage", 1, telegramtest.Fault{Break: telegramtest.BreakAfter})
	w.telegram.Say(anna, "<one>")
	w.eventually("a dead letter", func() bool { return len(w.dead()) == 1 })
	contains(t, "what the owner is told", p.hears(1), "Telegram", "couldn't be delivered")
	if strings.Contains(p.hears(1), "<one>") {
		t.Errorf("the owner is told what it was: %q", p.hears(1))
	}
	w.telegram.Say(anna, "<two>")
	w.told(anna, 2)
	w.settled()
	// The agent hears beside the message what may have become of its answer.
	if got := w.texts(anna); len(got) != 2 || got[1] != "You said <one> <two>" {
		t.Errorf("Telegram has %q", got)
	}
}

func TestKernelThatIsAskedToStopInMidWorkRepeatsNothing(t *testing.T) {
	t.Parallel()
	const chats, each = 20, 3
	w := newWorld(t, strangers(), withModel)
	w.config(`channels: {telegram_channel: {allow_from: ["*"]}}`)
	w.model.Handle(echo)
	w.start()
	w.telegramReady()
	for i := range each {
		before := w.telegram.Accepted()
		for c := range chats {
			w.telegram.Say(int64(5000+c), fmt.Sprintf("message <c%dm%d>", c, i))
		}
		if err := w.telegram.WaitAccepted(w.ctx(), before+chats/4); err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.start()
		w.telegramReady()
	}
	w.eventually("all messages", func() bool { return w.count("user.message") == chats*each })
	w.settled()
	w.answered(chats, each)
	for c := range chats {
		for _, text := range w.texts(int64(5000 + c)) {
			if strings.HasPrefix(text, contract.RepeatMark) {
				t.Errorf("chat %d reads %q", c, text)
			}
		}
	}
}
