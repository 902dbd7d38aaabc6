package e2e

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// sendTool is the name by which a model calls core/send_to_channel.
const sendTool = "send_to_channel"

// greeter is a model that sends a greeting to Telegram when it is asked to.
func greeter(greeting, confirmation string) func(openaitest.Request) openaitest.Answer {
	return func(r openaitest.Request) openaitest.Answer {
		if len(r.Results()) > 0 {
			return openaitest.Say(confirmation)
		}
		return openaitest.CallTool(sendTool, map[string]string{"channel_id": "telegram_channel", "text": greeting})
	}
}

func TestGreetingGoesToTelegramOnlyAndItsConfirmationToTheTerminalOnly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, sentence, greeting, confirmation string
		scripted                               bool
	}{
		{name: "english", sentence: "say hi to me in Telegram", greeting: "Hi", confirmation: "Telegram"},
		{name: "russian", sentence: "Передай мне привет в Telegram", greeting: "Привет",
			confirmation: "Telegram"},
		{name: "english, scripted", sentence: "say hi to me in Telegram", greeting: "Hi there!", confirmation: "I said hi.",
			scripted: true},
		{name: "russian, scripted", sentence: "Передай мне привет в Telegram", greeting: "Привет!",
			confirmation: "Хорошо, передал.", scripted: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			opts := []option{withTelegram()}
			if tt.scripted {
				opts = append(opts, withModel)
			}
			w := newWorld(t, opts...)
			if tt.scripted {
				w.model.Handle(greeter(tt.greeting, tt.confirmation))
			}
			w.start()
			w.telegramReady()
			p := w.attach()
			answer := p.ask(tt.sentence)
			if !strings.Contains(answer, tt.confirmation) {
				t.Errorf("the terminal shows %q", answer)
			}
			if got := w.told(anna, 1).Text; !strings.Contains(got, tt.greeting) {
				t.Errorf("Telegram shows %q", got)
			}
			w.settled()
			if n := len(w.texts(anna)); n != 1 {
				t.Errorf("Telegram has %d messages: %q", n, w.texts(anna))
			}
			if got := p.texts(); len(got) != 1 {
				t.Errorf("the terminal has %q", got)
			}
			if got := w.texts(boris); len(got) != 0 {
				t.Errorf("somebody else got %q", got)
			}
			if dead := w.dead(); len(dead) != 0 {
				t.Errorf("dead letters: %q", dead)
			}
		})
	}
}
