package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// reminder is a sentence that asks for a reminder in Telegram, and what the
// reminder says.
type reminder struct {
	name, sentence, text string
	scripted             bool
}

func (r reminder) options() []option {
	if r.scripted {
		return []option{withTelegram(), withModel}
	}
	return []option{withTelegram()}
}

// script has the model, if there is one, set the reminder.
func (r reminder) script(w *world, seconds int, channel string) {
	if !r.scripted {
		return
	}
	w.model.Handle(func(q openaitest.Request) openaitest.Answer {
		if len(q.Results()) > 0 {
			return openaitest.Say("Noted: " + q.Results()[0])
		}
		args := map[string]any{"message": r.text, "delay_seconds": seconds}
		if channel != "" {
			args["channel_id"] = channel
		}
		return openaitest.CallTool("scheduler__schedule_once", args)
	})
}

func kettle(seconds int) []reminder {
	en := fmt.Sprintf("in %d seconds remind me in Telegram to turn off the kettle", seconds)
	ru := fmt.Sprintf("через %d сек напомни мне в Telegram выключить чайник", seconds)
	return []reminder{
		{name: "english", sentence: en, text: "turn off the kettle"},
		{name: "russian", sentence: ru, text: "ыключить чайник"},
		{name: "english, scripted", sentence: en, text: "Turn off the kettle!", scripted: true},
		{name: "russian, scripted", sentence: ru, text: "Выключи чайник!", scripted: true},
	}
}

// onlyReminder checks that one reminder arrived in a chat, and nothing else.
func (w *world) onlyReminder(chat int64, text string, late bool) {
	w.t.Helper()
	got := w.told(chat, 1).Text
	w.settled()
	if all := w.texts(chat); len(all) != 1 {
		w.t.Errorf("instead of one message there are: %q", all)
	}
	if !strings.Contains(got, text) {
		w.t.Errorf("the reminder is %q, without %q", got, text)
	}
	if says := strings.Contains(got, "late") || strings.Contains(got, "опозда"); says != late {
		w.t.Errorf("the reminder is %q; marked late: %v, want %v", got, says, late)
	}
	if n := w.count("system.user.notify"); n != 1 {
		w.t.Errorf("it was published %d times", n)
	}
	if dead := w.dead(); len(dead) != 0 {
		w.t.Errorf("dead letters: %q", dead)
	}
}

func TestReminderArrivesOnceInTelegram(t *testing.T) {
	t.Parallel()
	for _, r := range kettle(2) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, r.options()...)
			r.script(w, 2, "telegram_channel")
			w.start()
			w.telegramReady()
			p := w.attach()
			if answer := p.ask(r.sentence); !strings.Contains(answer, "Telegram") &&
				!strings.Contains(answer, "telegram_channel") {
				t.Errorf("the answer does not say where: %q", answer)
			}
			w.onlyReminder(anna, r.text, false)
			if got := p.texts(); len(got) != 1 {
				t.Errorf("the terminal has %q", got)
			}
		})
	}
}

func TestReminderSurvivesAKernelKilledBeforeItsTime(t *testing.T) {
	t.Parallel()
	for seconds := 8; ; seconds *= 2 { // a slow machine takes longer to start the next kernel
		r := kettle(seconds)[0]
		w := newWorld(t, r.options()...)
		w.start()
		p := w.attach()
		due := time.Now().Add(time.Duration(seconds) * time.Second) // at the earliest
		p.ask(r.sentence)
		w.settled()
		w.restart()
		w.state(w.control(), "scheduler", "active")
		if time.Now().After(due) {
			w.crash()
			continue
		}
		w.onlyReminder(anna, r.text, false)
		return
	}
}

// missed sets a reminder and kills the kernel before its time, which it waits
// for.
func (r reminder) missed(t *testing.T, seconds int) *world {
	t.Helper()
	w := newWorld(t, r.options()...)
	w.start()
	w.attach().ask(r.sentence)
	due := time.Now().Add(time.Duration(seconds) * time.Second) // at the latest
	w.settled()
	w.crash()
	if w.count("system.user.notify") > 0 {
		return nil // it was too late for that
	}
	w.eventually("the time of the reminder", func() bool { return time.Now().After(due.Add(50 * time.Millisecond)) })
	return w
}

func TestReminderWhoseTimePassedWhileTheKernelWasDownComesLateAndOnce(t *testing.T) {
	t.Parallel()
	for i, r := range kettle(2)[:2] {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := r.missed(t, 2)
			for seconds := 4; w == nil; seconds *= 2 {
				w = kettle(seconds)[i].missed(t, seconds)
			}
			w.start()
			w.onlyReminder(anna, r.text, true)
			w.settled()
			w.restart()
			w.onlyReminder(anna, r.text, true)
		})
	}
}

func TestReminderWaitsForTelegramToComeBack(t *testing.T) {
	t.Parallel()
	r := kettle(1)[0]
	w := newWorld(t, r.options()...)
	w.start()
	w.telegramReady()
	p := w.attach()
	w.telegram.Down()
	p.ask(r.sentence)
	w.eventually("the reminder", func() bool { return w.count("channel.send.telegram_channel") > 0 })
	if err := w.telegram.Up(); err != nil {
		t.Fatal(err)
	}
	w.onlyReminder(anna, r.text, false)
}

func TestReminderGoesBackToWhoAskedForIt(t *testing.T) {
	t.Parallel()
	for _, r := range []reminder{
		{name: "english", sentence: "in 1 second remind me to turn off the kettle", text: "turn off the kettle"},
		{name: "russian", sentence: "через 1 сек напомни мне выключить чайник",
			text: "ыключить чайник"},
		{name: "scripted", sentence: "remind me of the kettle, soon", text: "Turn off the kettle!", scripted: true},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, r.options()...)
			r.script(w, 1, "")
			w.start()
			w.telegramReady()
			p := w.attach()
			w.telegram.Say(boris, r.sentence)
			second := w.told(boris, 2).Text
			if !strings.Contains(second, r.text) {
				t.Errorf("the reminder is %q", second)
			}
			w.telegram.Inject(telegramtest.Incoming{
				Chat: telegramtest.Chat{ID: group, Type: telegramtest.Group, Title: "Family"},
				From: telegramtest.User{ID: boris, FirstName: "Boris"},
				Text: "@" + w.telegram.Bot().Username + " " + r.sentence,
			})
			second = w.told(group, 2).Text
			if !strings.Contains(second, r.text) {
				t.Errorf("the reminder in the group is %q", second)
			}
			w.settled()
			if a, b, g := w.texts(anna), w.texts(boris), w.texts(group); len(a) != 0 || len(b) != 2 || len(g) != 2 {
				t.Errorf("the owner has %q, the one who asked %q, the group %q", a, b, g)
			}
			if got := p.texts(); len(got) != 0 {
				t.Errorf("the terminal has %q", got)
			}
		})
	}
}
