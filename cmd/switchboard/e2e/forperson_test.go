package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// A message and a reminder for another person reach their private chat, and the tools say
// so when they are called. Nothing of theirs reaches the owner of another channel.
func TestForAnotherPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	calls := map[string]openaitest.Answer{
		"<send>": openaitest.CallTool("send_to_channel",
			map[string]string{"channel_id": "telegram_channel", "person": "Boris", "text": "dinner is ready"}),
		"<remind>": openaitest.CallTool("scheduler__schedule_once",
			map[string]any{"message": "bring salt", "delay_seconds": 1, "person": "Boris"}),
		"<diary>": openaitest.CallTool("send_to_channel",
			map[string]string{"channel_id": "cli_channel", "text": "a diary"}),
	}
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		for said, call := range calls {
			if strings.HasSuffix(r.Last("user"), said) && len(r.Results()) == 0 {
				return call
			}
		}
		if results := r.Results(); len(results) > 0 {
			return openaitest.Say("result: " + results[len(results)-1])
		}
		return openaitest.Say("hello")
	})
	w.start()
	w.telegramReady()
	terminal := w.attach()
	shown := func(chat int64, text string) {
		t.Helper()
		w.eventually(text, func() bool {
			return slices.ContainsFunc(w.texts(chat), func(shown string) bool { return strings.Contains(shown, text) })
		})
	}
	say := func(text string) {
		w.telegram.Inject(telegramtest.Incoming{From: telegramtest.User{ID: boris, FirstName: "Boris"}, Text: text})
	}
	say("hello")
	shown(boris, "hello")
	w.telegram.Say(anna, "<send>")
	shown(anna, `"to":"Boris on Telegram (private)"`)
	shown(boris, "dinner is ready")
	w.telegram.Say(anna, "/new")
	shown(anna, "New conversation")
	w.telegram.Say(anna, "<remind>")
	shown(anna, "will reach Boris on Telegram (private)")
	shown(boris, "bring salt")
	w.settled()
	for _, text := range w.texts(anna) {
		if strings.HasPrefix(text, "⏰") {
			t.Errorf("the one who set it is shown %q", text)
		}
	}
	say("/new")
	shown(boris, "New conversation")
	say("<diary>")
	shown(boris, "0 people are named")
	w.settled()
	if got := strings.Join(terminal.texts(), "\n"); strings.Contains(got, "a diary") {
		t.Errorf("the owner's terminal shows %q", got)
	}
}
