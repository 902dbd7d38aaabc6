package e2e

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

func TestTaskWhosePromptNamesAChannelEndsThereOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, prompt, text string
		scripted           bool
	}{
		{name: "english", prompt: "Pending reminder (channel: telegram_channel): turn off the kettle",
			text: "turn off the kettle"},
		{name: "russian", prompt: "Напоминание (канал: telegram_channel): выключить чайник",
			text: "ыключить чайник"},
		{name: "scripted", prompt: "Pending reminder: the user asked to be reminded in Telegram of the kettle",
			text: "Turn off the kettle!", scripted: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			opts := []option{withTelegram()}
			if tt.scripted {
				opts = append(opts, withModel)
			}
			w := newWorld(t, opts...)
			if tt.scripted {
				w.model.Handle(func(r openaitest.Request) openaitest.Answer {
					if len(r.Results()) > 0 {
						return openaitest.Say("I have reminded the user in Telegram.")
					}
					return openaitest.CallTool(sendTool, map[string]string{"channel_id": "telegram_channel", "text": tt.text})
				})
			}
			w.probe("heart", "bus", "permissions: {publish: [system.agent.task]}")
			w.start()
			w.telegramReady()
			p := w.attach()
			w.request("heart", "in", `{"topic": "system.agent.task", "payload": {"prompt": "`+tt.prompt+`"}}`)
			if got := w.line(1, "heart", "out"); got != "ok" {
				t.Fatal(got)
			}
			got := w.told(anna, 1).Text
			w.settled()
			if !strings.Contains(got, tt.text) {
				t.Errorf("Telegram shows %q", got)
			}
			if all := w.texts(anna); len(all) != 1 {
				t.Errorf("Telegram has %q", all)
			}
			if all := p.texts(); len(all) != 0 {
				t.Errorf("the terminal has %q", all)
			}
			if dead := w.dead(); len(dead) != 0 {
				t.Errorf("dead letters: %q", dead)
			}
		})
	}
}

func TestTaskWithAChannelSendsItsFinalTextThereOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("Here is your summary.") })
	w.probe("heart", "bus", "permissions: {publish: [system.agent.task, system.user.notify]}")
	w.start()
	w.telegramReady()
	p := w.attach()
	w.request("heart", "in",
		`{"topic": "system.agent.task", "payload": {"prompt": "Summarize the day", "channel_id": "telegram_channel"}}`)
	if got := w.told(anna, 1).Text; got != "Here is your summary." {
		t.Errorf("Telegram shows %q", got)
	}
	w.settled()
	if all := w.texts(anna); len(all) != 1 {
		t.Errorf("Telegram has %q", all)
	}
	if all := p.texts(); len(all) != 0 {
		t.Errorf("the terminal has %q", all)
	}
}

func TestReminderMadeByAScheduleOfTasksRunsTheAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	const job = "Tell the user a joke in Telegram"
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		switch due, done := strings.Contains(r.Last("user"), job), len(r.Results()) > 0; {
		case due && done:
			return openaitest.Say("Done.")
		case due:
			return openaitest.CallTool(sendTool, map[string]string{"channel_id": "telegram_channel", "text": "A joke."})
		case done:
			return openaitest.Say("I will.")
		}
		return openaitest.CallTool("scheduler__schedule_once",
			map[string]any{"message": job, "delay_seconds": 1, "topic": "system.agent.task"})
	})
	w.start()
	w.telegramReady()
	p := w.attach()
	if got := p.ask("tell me a joke in Telegram, in a second"); got != "I will." {
		t.Errorf("the terminal shows %q", got)
	}
	if got := w.told(anna, 1).Text; got != "A joke." {
		t.Errorf("Telegram shows %q", got)
	}
	w.eventually("the end of the job", func() bool { return w.count("agent.output") == 2 })
	w.settled()
	if all := w.texts(anna); len(all) != 1 {
		t.Errorf("Telegram has %q", all)
	}
	if all := p.texts(); len(all) != 1 {
		t.Errorf("the terminal has %q", all)
	}
}
