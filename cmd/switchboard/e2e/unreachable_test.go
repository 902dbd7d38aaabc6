package e2e

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// A person who blocks the bot is no problem of Telegram: the owner is told there at once,
// and the agent learns that its answer was not read.
func TestPersonWhoBlocksTheBot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	gate := make(chan struct{})
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		newest := r.Messages[len(r.Messages)-1].Content.Text
		if strings.Contains(newest, "slowly") {
			a := openaitest.Say("The code is 4711.")
			a.Gate = gate
			return a
		}
		return openaitest.Say("OK.")
	})
	w.start()
	w.telegramReady()
	w.telegram.Say(anna, "hello")
	w.told(anna, 1)
	w.telegram.Say(boris, "think slowly")
	w.eventually("his turn", func() bool { return w.model.Total() == 2 })
	w.telegram.Block(boris)
	close(gate)
	contains(t, "what the owner is told", w.told(anna, 2).Text, "A message to User on Telegram couldn't be delivered",
		"blocked by the user")
	w.settled()
	w.telegram.Unblock(boris)
	w.telegram.Say(boris, "what was the code?")
	if got := w.told(boris, 1).Text; got != "OK." {
		t.Errorf("he is told %q", got)
	}
	requests := w.model.Requests()
	var said strings.Builder
	for _, m := range requests[len(requests)-1].Messages {
		said.WriteString(m.Content.Text + "\n")
	}
	contains(t, "what the model reads", said.String(), "was not delivered, and the user has not seen it", "The code is 4711.")
	contains(t, "the channels", w.must("channels", "list"), "ready")
}
