package offline

import (
	"strings"
	"testing"
)

// Each line is a dialog and what its last message does: the calls, or the beginning of
// the answer.
func TestDialogs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ said, want string }{
		// Which reminder is meant
		{"cancel the pills", `cancel_schedule {"id":"r1"}`},
		{"cancel the pils", `cancel_schedule {"id":"r1"}`},
		{"cancle the pills", `cancel_schedule {"id":"r1"}`},
		{"cancel the second one", "Which one? Say its number.\n1. take the pills"},
		{"cancel the second one || 2", `cancel_schedule {"id":"r2"}`},
		{"cancel the second one || the rent", `cancel_schedule {"id":"r2"}`},
		{"list reminders || cancel the second one", `cancel_schedule {"id":"r2"}`},
		{"cancel it", "Which one?"},
		{"cancel my subscription", "I couldn't find a reminder"},
		{"cancel everything", "Cancel all 3 reminders?"},
		{"cancel everything || no", "OK, I changed nothing."},
		{"cancel everything || yes", `cancel_schedule {"id":"r1"}` + "\n" + `cancel_schedule {"id":"r2"}` + "\n" +
			`cancel_schedule {"id":"r3"}`},
		{"yes", "OK, but I haven't asked"},
		{"отмени таблетки", `cancel_schedule {"id":"r1"}`},
		{"покажи напоминания || отмени второе", `cancel_schedule {"id":"r2"}`},
		{"отмени всё || да", `cancel_schedule {"id":"r1"}` + "\n" + `cancel_schedule {"id":"r2"}` + "\n" +
			`cancel_schedule {"id":"r3"}`},
		{"отмени всё || нет", "Хорошо, ничего не меняю."},
		{"don't cancel the pills", "I didn't understand"},
		{"should I cancel the pills?", "I didn't understand"},
		{"не отменяй таблетки", "Я вас не понимаю"},
		{"remind me at 6pm || buy milk and cancel the order", `schedule_once {"at":"2026-03-11T18:00:00+01:00",` +
			`"message":"buy milk and cancel the order","timezone":"Europe/Berlin"}`},
		{"remind me to call Bob || tomorrow || at 9am", `schedule_once {"at":"2026-03-12T09:00:00+01:00",` +
			`"message":"call Bob","timezone":"Europe/Berlin"}`},
		// Undo
		{"cancel the pills || undo", `update_schedule {"action":"undo","id":"r1"}`},
		{"cancel the pills || no, bring it back", `update_schedule {"action":"undo","id":"r1"}`},
		{"move the pills to 10 || undo", `update_schedule {"action":"undo","id":"r1"}`},
		{"remind me to call Bob at 6pm || please cancel that", `cancel_schedule {"id":"r4"}`},
		{"remind me to call Bob at 6pm || undo", `cancel_schedule {"id":"r4"}`},
		{"remind me tomorrow || please cancel that", "OK, I changed nothing."},
		{"remember I am allergic to nuts || undo", `forget {"ids":["m2new"]}`},
		{"forget my wife's name || undo", `remember {"kind":"fact","text":"my wife's name is Anna"}`},
		{"undo", "There's nothing to undo."},
		{"отмени таблетки || верни", `update_schedule {"action":"undo","id":"r1"}`},
		{"напомни позвонить Бобу в 18:00 || отмени это", `cancel_schedule {"id":"r4"}`},
		{"remember I like tea || forget it", `forget {"ids":["m2new"]}`},
		{"remind me to call Bob at 6pm || delete", `cancel_schedule {"id":"r4"}`},
		{"запомни, что я люблю чай || забудь это", `forget {"ids":["m2new"]}`},
		{"напомни ему завтра в 9", "О каком напоминании речь?"},
		// Changes
		{"move the pills to 10", `update_schedule {"cron":"0 10 * * *","id":"r1","timezone":"Europe/Berlin"}`},
		{"move call mum to friday", `update_schedule {"at":"2026-03-13T18:00:00+01:00","id":"r3",` +
			`"timezone":"Europe/Berlin"}`},
		{"move the pills to friday", "That reminder repeats"},
		{"postpone call mum by an hour", `update_schedule {"at":"2026-03-12T19:00:00+01:00","id":"r3",` +
			`"timezone":"Europe/Berlin"}`},
		{"remind me to call Bob at 6pm || no, at 7", `update_schedule {"at":"2026-03-11T19:00:00+01:00","id":"r4",` +
			`"timezone":"Europe/Berlin"}`},
		{"no, at 7", "What do you mean?"},
		{"list reminders || move the first one to 11am", `update_schedule {"cron":"0 11 * * *","id":"r1",` +
			`"timezone":"Europe/Berlin"}`},
		{"remind me to call Bob at 6pm || what time is it? || no, at 7", `update_schedule {` +
			`"at":"2026-03-11T19:00:00+01:00","id":"r4","timezone":"Europe/Berlin"}`},
		{"timer 5 minutes || make it 10 minutes", `update_schedule {"delay_seconds":600,"id":"r4"}`},
		{"pause the pills", `update_schedule {"action":"pause","id":"r1"}`},
		{"move it to 6pm", "Which one?"},
		{"rename the pills to vitamins", `update_schedule {"id":"r1","message":"vitamins"}`},
		{"напомни позвонить Бобу в 18 || нет, в 7", `update_schedule {"at":"2026-03-11T19:00:00+01:00","id":"r4",` +
			`"timezone":"Europe/Berlin"}`},
		{"перенеси таблетки на 10 утра", `update_schedule {"cron":"0 10 * * *","id":"r1","timezone":"Europe/Berlin"}`},
		{"отложи маму на час", `update_schedule {"at":"2026-03-12T19:00:00+01:00","id":"r3","timezone":"Europe/Berlin"}`},
		// Again
		{"! Reminder: take the pills || snooze 10 minutes", `schedule_once {"delay_seconds":600,` +
			`"message":"take the pills"}`},
		{"! Reminder: take the pills || remind me again in an hour", `schedule_once {"delay_seconds":3600,` +
			`"message":"take the pills"}`},
		{"! Reminder: take the pills || in an hour", `schedule_once {"delay_seconds":3600,` +
			`"message":"take the pills"}`},
		{"snooze", "Which reminder do you mean?"},
		{"remind me about that tomorrow at 9", "Which reminder do you mean?"},
		{"! Напоминание: принять таблетки || отложи на 10 минут", `schedule_once {"delay_seconds":600,` +
			`"message":"принять таблетки"}`},
		{"напомни об этом завтра в 9", "О каком напоминании речь?"},
		{"напомни снова позвонить маме через час", `schedule_once {"delay_seconds":3600,` +
			`"message":"позвонить маме"}`},
		// Timers and alarms
		{"timer 10 minutes", `schedule_once {"delay_seconds":600,"message":"Timer: 10 minutes"}`},
		{"set a 5 min timer for pasta", `schedule_once {"delay_seconds":300,"message":"Timer: pasta"}`},
		{"timer 10 minutes || how much time is left?", "Next: Timer: 10 minutes"},
		{"wake me up at 7", `schedule_once {"at":"2026-03-12T07:00:00+01:00","message":"Alarm: 07:00",` +
			`"timezone":"Europe/Berlin"}`},
		{"set an alarm for 7", "Morning or evening?"},
		{"set an alarm for 7 || am", `schedule_once {"at":"2026-03-12T07:00:00+01:00","message":"Alarm: 07:00",` +
			`"timezone":"Europe/Berlin"}`},
		{"таймер на полчаса", `schedule_once {"delay_seconds":1800,"message":"Таймер: полчаса"}`},
		{"разбуди меня в 7", `schedule_once {"at":"2026-03-12T07:00:00+01:00","message":"Будильник: 07:00",` +
			`"timezone":"Europe/Berlin"}`},
		// Memory and lists
		{"remember to buy milk", `remember {"kind":"open","text":"buy milk"}`},
		{"remember I am allergic to nuts", `remember {"text":"I am allergic to nuts"}`},
		{"what's my wife's name?", "Here's what I remember:\n- my wife's name is Anna"},
		{"what's my dog's name?", "I don't remember anything"},
		{"add milk to my shopping list || what's on my shopping list?", "Here's what I remember:\n- shopping list: milk"},
		{"как зовут мою жену?", "Вот что я помню:\n- мою жену зовут Анна"},
		{"не забудь купить молоко", `remember {"kind":"open","text":"купить молоко"}`},
		{"добавь молоко в список покупок || что в списке покупок?", "Вот что я помню:\n- список покупок: молоко"},
		// Questions
		{"when is my next reminder?", "Next: take the pills"},
		{"what do I have tomorrow?", "Your reminders:\n1. take the pills"},
		{"what do I have today?", "You have no reminders for today."},
		{"when do I pay rent?", "Your reminders:\n1. pay rent"},
		{"what time is it?", "It's 14:20"},
		{"what is 15% of 80?", "12"},
		{"how do I connect Telegram?", "Run `switchboard setup`"},
		{"bye", "Bye!"},
		{"stop", "OK."},
		{"stop it || stop", "OK."},
		{"timer 10 minutes || stop", `cancel_schedule {"id":"r4"}`},
		{"timer 10 minutes || ok stop it please", `cancel_schedule {"id":"r4"}`},
		{"remind me to call Bob at 18:00 || never mind", `cancel_schedule {"id":"r4"}`},
		{"remind me to call Bob at 18:00 || done", "OK."},
		{"remind me to call Bob at 18:00 || leave it", "OK."},
		{"remember the code is 4471 || stop", "OK."},
		{"засеки 10 минут || стоп", `cancel_schedule {"id":"r4"}`},
		{"разбуди в 7 || ладно не надо", `cancel_schedule {"id":"r4"}`},
		{"напомни позвонить маме завтра в 18:00 || ничего", "Хорошо."},
		{"wake me up at 7 || make that 7:15",
			`update_schedule {"at":"2026-03-12T07:15:00+01:00","id":"r4","message":"Alarm: 07:15","timezone":"Europe/Berlin"}`},
		{"запомни что мою кошку зовут Муся || забудь как зовут мою кошку", `forget {"ids":["m2new"]}`},
		{"когда следующее напоминание?", "Ближайшее: принять таблетки"},
		{"во сколько мне пить таблетки?", "Ваши напоминания:\n1. принять таблетки"},
		{"какой сегодня день?", "Сейчас ср 11 марта 2026"},
		{"сколько будет два плюс два", "4"},
		{"как подключить телеграм?", "Выполните `switchboard setup`"},
		// Slips, politeness, rhythms
		{"remind me to call mum tomorow at 18:00", `schedule_once {"at":"2026-03-12T18:00:00+01:00",` +
			`"message":"call mum","timezone":"Europe/Berlin"}`},
		{"remind me to buy a sundae at 6pm", `schedule_once {"at":"2026-03-11T18:00:00+01:00",` +
			`"message":"buy a sundae","timezone":"Europe/Berlin"}`},
		{"remind me this afternoon to call Bob", `schedule_once {"at":"2026-03-11T15:00:00+01:00",` +
			`"message":"call Bob","timezone":"Europe/Berlin"}`},
		{"напомни-ка через час купить хлеб, пожалуйста", `schedule_once {"delay_seconds":3600,` +
			`"message":"купить хлеб"}`},
		{"напомни приготовить завтрак в 18:00", `schedule_once {"at":"2026-03-11T18:00:00+01:00",` +
			`"message":"приготовить завтрак","timezone":"Europe/Berlin"}`},
		{"напоминай через день в 9 пить воду", `schedule_recurring {"cron":"0 9 * * *","every_days":2,` +
			`"message":"пить воду","timezone":"Europe/Berlin"}`},
	} {
		t.Run(tt.said, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.said)
			got := ""
			for text := range strings.SplitSeq(tt.said, " || ") {
				if delivered, ok := strings.CutPrefix(text, "! "); ok {
					w.deliver(delivered)
					continue
				}
				if got = w.say(text); len(w.did) > 0 {
					got = strings.Join(w.did, "\n")
				}
			}
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
