package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// TestFaultsOfAModelLoseNothing has each request of a turn with tools go wrong
// in each way in which requests do that may be made again. The turn goes on: no
// tool runs twice, and there is one reply, without a mark.
func TestFaultsOfAModelLoseNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fault openaitest.Answer
	}{
		{"429 with Retry-After", openaitest.RateLimited("1")},
		{"429 without", openaitest.RateLimited("")},
		{"500", openaitest.Fail(http.StatusInternalServerError, "The server had an error")},
		{"502 of 10 MB", openaitest.Fail(http.StatusBadGateway, "<html>"+strings.Repeat("x", 10<<20))},
		{"503 that is not UTF-8", openaitest.Fail(http.StatusServiceUnavailable, "\xff\xfe")},
		{"reset after the request was received", openaitest.Break(openaitest.Cut, "", 0)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, "")
			s.open()
			var tokens []string
			for round := range len(rounds("")) + 1 {
				token := fmt.Sprintf("<c%dm0>", round)
				tokens = append(tokens, token)
				failed := false
				s.onRequest(func(now order) {
					// The handler answers this request; the next one, which is the
					// one of the round that is meant, fails.
					if now.tokens[0] == token && now.asked+1 == round && !failed {
						failed = true
						s.model.Queue(tt.fault)
					}
				})
				if round == 0 {
					s.model.Queue(tt.fault)
				}
				s.write(token)
				s.survived(tokens...)
				if left := s.model.Left(); left != 0 {
					t.Errorf("round %d: nothing went wrong", round)
				}
			}
		})
	}
}

// TestModelsThatHangHoldNobodyElse has the model never answer one person. Others
// are answered meanwhile, and that person gets a message in the end.
func TestModelsThatHangHoldNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.config(fmt.Sprintf("channels: {telegram_channel: {allow_from: ['%d', '%d']}}\nextensions: {openai: {config: "+
		"{idle_timeout: 10s}}}", anna, boris))
	gate := make(chan struct{})
	defer close(gate)
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if strings.Contains(r.Last("user"), "<hangs>") {
			return openaitest.Answer{Gate: gate}
		}
		return echo(r)
	})
	w.start()
	w.telegramReady()
	w.telegram.Say(anna, "<hangs>")
	w.eventually("the model to be asked", func() bool { return w.model.Total() > 0 })
	for i := range 3 {
		w.telegram.Say(boris, fmt.Sprintf("<m%d>", i))
		w.told(boris, i+1)
	}
	contains(t, "what the one who waited is told", w.told(anna, 1).Text, "Sorry", "did not begin to answer within 10 s")
	w.telegram.Say(anna, "<again>")
	contains(t, "the next answer", w.told(anna, 2).Text, "<again>")
	w.settled()
	if n := len(w.texts(anna)); n != 2 {
		t.Errorf("Telegram has %q", w.texts(anna))
	}
}

// TestKeyOfAModelIsReplacedWhileRunning has a key revoked while the kernel runs.
// People get a message, and an answer as soon as the next key is set.
func TestKeyOfAModelIsReplacedWhileRunning(t *testing.T) {
	t.Parallel()
	const next = "sk-the-next-key-of-this-account"
	w := newWorld(t, withTelegram(), withModel)
	delete(w.env, "OPENAI_API_KEY")
	w.write("OPENAI_API_KEY="+openaiKey+"\n", 0o600, "secrets.env")
	w.model.Handle(echo)
	w.start()
	w.telegramReady()
	w.telegram.Say(anna, "<one>")
	contains(t, "with a good key", w.told(anna, 1).Text, "<one>")
	telegram := w.state(w.control(), "telegram_channel", "active").Pid
	w.model.RequireKey(next)
	w.telegram.Say(anna, "<two>")
	refused := w.told(anna, 2).Text
	contains(t, "with one that was revoked", refused, "Sorry", "key", "OPENAI_API_KEY")
	if strings.Contains(refused, openaiKey) {
		t.Errorf("the key is told: %q", refused)
	}
	w.write("OPENAI_API_KEY="+next+"\n", 0o600, "secrets.env")
	n := 2
	w.eventually("an answer with the next key", func() bool {
		n++
		w.telegram.Say(anna, fmt.Sprintf("<m%d>", n))
		text := w.told(anna, n).Text
		return strings.HasPrefix(text, "You said ") && strings.Contains(text, fmt.Sprintf("<m%d>", n))
	})
	w.settled()
	if pid := w.state(w.control(), "telegram_channel", "active").Pid; pid != telegram {
		t.Error("the channel was started anew for the key of a model")
	}
}
