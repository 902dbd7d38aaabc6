package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

func TestNoticeForAChannelThatStaysDownGoesToTheDefaultOneOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.config(`channels: {default: cli_channel, hold: 1s, telegram_channel: {allow_from: ["1001"]}}`)
	w.probe("sender", "bus", "permissions: {publish: [system.user.notify]}")
	w.start()
	w.telegramReady()
	p := w.attach()
	w.telegram.Down()
	c := w.control()
	w.eventually("the channel to notice", func() bool { return w.extension(c, "telegram_channel").Readiness == "offline" })
	w.request("sender", "in",
		`{"topic": "system.user.notify", "payload": {"text": "The washing is done.", "channel_id": "telegram_channel"}}`)
	if got := p.hears(1); got != "[for telegram_channel] The washing is done." {
		t.Errorf("the terminal shows %q", got)
	}
	if err := w.telegram.Up(); err != nil {
		t.Fatal(err)
	}
	w.telegram.Say(anna, "list channels")
	w.told(anna, 1)
	w.settled()
	if got := w.texts(anna); len(got) != 1 || strings.Contains(got[0], "washing") {
		t.Errorf("Telegram has %q", got)
	}
}

func TestReplyWaitsForItsChannelHoweverLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.config(`channels: {default: cli_channel, hold: 0s, telegram_channel: {allow_from: ["1001"]}}`)
	gate := make(chan struct{})
	w.model.Queue(openaitest.Answer{Text: "Here is your answer.", Gate: gate})
	w.start()
	w.telegramReady()
	p := w.attach()
	w.telegram.Say(anna, "a question")
	w.eventually("the turn", func() bool { return w.model.Total() == 1 })
	w.telegram.Down()
	c := w.control()
	w.eventually("the channel to notice", func() bool { return w.extension(c, "telegram_channel").Readiness == "offline" })
	close(gate)
	w.eventually("the reply", func() bool { return w.count("channel.send.telegram_channel") == 1 })
	w.restart()
	w.eventually("the kernel to look at what it holds", func() bool { return time.Since(w.started) > 6*time.Second })
	if err := w.telegram.Up(); err != nil {
		t.Fatal(err)
	}
	if got := w.told(anna, 1).Text; got != "Here is your answer." {
		t.Errorf("Telegram has %q", got)
	}
	w.settled()
	if len(w.texts(anna)) != 1 || len(p.texts()) != 0 {
		t.Errorf("Telegram has %q, the terminal %q", w.texts(anna), p.texts())
	}
}

func TestNoticeWaitsForATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probe("sender", "bus", "permissions: {publish: [system.user.notify]}")
	w.start()
	w.request("sender", "in", `{"topic": "system.user.notify", "payload": {"text": "The washing is done."}}`)
	w.line(1, "sender", "out")
	w.restart()
	first := w.attach()
	first.hearsLike("washing")
	second := w.attach() // whether it shows it, too, depends on who is faster
	w.request("sender", "in", `{"topic": "system.user.notify", "payload": {"text": "The dishes are done."}}`)
	if a, b := first.hearsLike("dishes"), second.hearsLike("dishes"); a != b {
		t.Errorf("the terminals show %q and %q", a, b)
	}
	w.settled()
	first.leave()
	w.restart()
	if got := w.attach(); len(got.texts()) != 0 {
		t.Errorf("it is shown again: %q", got.texts())
	}
}

func TestCancelledReminderThatHasFiredIsNotDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Queue(
		openaitest.CallTool("scheduler__schedule_once", map[string]any{"message": "Turn off the kettle!", "delay_seconds": 1,
			"channel_id": "telegram_channel"}),
		openaitest.Say("I will."),
	)
	w.start()
	w.telegramReady()
	p := w.attach()
	w.telegram.Down()
	c := w.control()
	w.eventually("the channel to notice", func() bool { return w.extension(c, "telegram_channel").Readiness == "offline" })
	p.ask("remind me in Telegram of the kettle in a second")
	w.eventually("the reminder", func() bool { return w.count("channel.send.telegram_channel") == 1 })
	w.model.Queue(openaitest.CallTool("scheduler__cancel_schedule", map[string]any{"id": "r1"}),
		openaitest.Say("Cancelled."))
	p.ask("forget the kettle")
	contains(t, "the result", strings.Join(w.model.Requests()[3].Results(), ""), "withdrawn")
	if err := w.telegram.Up(); err != nil {
		t.Fatal(err)
	}
	w.model.Queue(openaitest.Say("Hello."))
	w.telegram.Say(anna, "hello")
	w.told(anna, 1)
	w.settled()
	if got := w.texts(anna); len(got) != 1 || got[0] != "Hello." {
		t.Errorf("Telegram has %q", got)
	}
}

func TestRecurringReminderDoesNotCatchUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.config(`{channels: {telegram_channel: {allow_from: ["1001"]}}, extensions: {scheduler: {config: {min_every_seconds: 1}}}}`)
	w.model.Queue(
		openaitest.CallTool("scheduler__schedule_recurring", map[string]any{"message": "Breathe.", "every_seconds": 2,
			"channel_id": "telegram_channel"}),
		openaitest.Say("I will."),
	)
	w.start()
	w.telegramReady()
	w.attach().ask("remind me to breathe every two seconds")
	w.told(anna, 1)
	w.crash()
	keys := func() []string {
		return w.query(`SELECT dedupe FROM event WHERE topic = 'system.user.notify' ORDER BY seq`)
	}
	fired := len(keys())
	down := time.Now()
	w.eventually("several times to pass", func() bool { return time.Since(down) > 7*time.Second })
	up := time.Now()
	w.start()
	w.eventually("further times", func() bool { return len(keys()) > fired+1 })
	w.told(anna, fired+1)
	w.crash()
	var missed []string
	for _, key := range keys()[fired:] { // its end says when it was due
		due, err := time.Parse(time.RFC3339, strings.SplitN(key, ":", 4)[3])
		if err != nil {
			t.Fatal(err)
		}
		if due.Before(up) {
			missed = append(missed, key)
		}
	}
	if len(missed) > 1 {
		t.Errorf("of what was missed there fired %q", missed)
	}
}
