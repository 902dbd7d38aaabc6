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
		{"wake me up at 7 || make it 7:30 || actually don't bother", "Should I undo that?"},
		{"wake me up at 7 || make it 7:30 || actually don't bother || cancel it", `cancel_schedule {"id":"r4"}`},
		{"разбуди в 7 || лучше в 7:30 || да ладно, не надо", "Отменить это?"},
		{"remind me to call Bob at 6pm || scratch that", `cancel_schedule {"id":"r4"}`},
		{"напомни позвонить Бобу в 18:00 || хотя не надо", `cancel_schedule {"id":"r4"}`},
		// A memory is not changed into something that was not said
		{"remember my shoe size is 42 || change it to 43", `forget {"ids":["m2new"]}` + "\n" +
			`remember {"kind":"fact","text":"my shoe size is 43"}`},
		{"remember my shoe size is 42 || oops 43", `forget {"ids":["m2new"]}` + "\n" +
			`remember {"kind":"fact","text":"my shoe size is 43"}`},
		{"remember my shoe size is 42 || oops 43 || undo", `remember {"kind":"fact","text":"my shoe size is 42"}` + "\n" +
			`forget {"ids":["m2new"]}`},
		{"remember my dog is called Rex || change it to Tim", "What should I change in “my dog is called Rex”?"},
		{"remember my dog is called Rex || change it to Tim || change Rex to Tim", `forget {"ids":["m2new"]}` + "\n" +
			`remember {"kind":"fact","text":"my dog is called Tim"}`},
		{"remember my wife's birthday is on 4 May || sorry, 5 May", "What should I change in “my wife's birthday"},
		{"запомни, что у меня размер обуви 42 || ой 43", `forget {"ids":["m2new"]}` + "\n" +
			`remember {"kind":"fact","text":"у меня размер обуви 43"}`},
		{"запомни: собаку зовут Рекс || поменяй на Тим", "Что изменить в «собаку зовут Рекс»?"},
		{"запомни: собаку зовут Рекс || замени Рекс на Тим", `forget {"ids":["m2new"]}` + "\n" +
			`remember {"kind":"fact","text":"собаку зовут Тим"}`},
		{"remind me to call Bob at 6pm || change it to Tim", "What should I change in “call Bob”?"},
		{"remind me to call Bob at 6pm || sorry, I meant Tim", "What should I change in “call Bob”?"},
		{"change the pills to vitamins", `update_schedule {"id":"r1","message":"take the vitamins"}`},
		{"remind me to buy milk at 5pm || no", "Should I undo that?"},
		{"remind me to buy milk at 5pm || no || undo", `cancel_schedule {"id":"r4"}`},
		{"what do I have today? || and tomorrow?", "I didn't understand"},
		{"remind me to take pills 3 times a day", "I can't repeat a reminder “3 times a day”."},
		{"don't set a timer for 5 minutes", "I didn't understand"},
		{"do not wake me up at 7", "I didn't understand"},
		{"не буди меня в 7", "Я вас не понимаю"},
		{"не ставь таймер на 5 минут", "Я вас не понимаю"},
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
		{"when is my wife's birthday?", "I don't remember anything about “wife's birthday”."},
		{"remember my wife's birthday is on 4 May || when is my wife's birthday?",
			"Here's what I remember:\n- my wife's birthday is on 4 May (11 Mar 2026) [m2new]"},
		{"what's my wife's shoe size?", "I don't remember anything"},
		{"do you know my name?", "I don't remember anything"},
		{"my name is Peter || what's my name?", "Here's what I remember:\n- my name is Peter"},
		{"когда день рождения у моей жены?", "Не помню ничего"},
		{"меня зовут Пётр || как меня зовут?", "Вот что я помню:\n- меня зовут Пётр"},
		{"I'm allergic to peanuts, remember that", `remember {"text":"I'm allergic to peanuts"}`},
		{"I really don't remember that", "I didn't understand"},
		{"запиши в покупки яйца || что в списке покупок?", "Вот что я помню:\n- список покупки: яйца"},
		{"add milk to my shopping list || what's on my shopping list?", "Here's what I remember:\n- shopping list: milk"},
		{"как зовут мою жену?", "Вот что я помню:\n- мою жену зовут Анна"},
		{"не забудь купить молоко", `remember {"kind":"open","text":"купить молоко"}`},
		{"добавь молоко в список покупок || что в списке покупок?", "Вот что я помню:\n- список покупок: молоко"},
		// Questions
		{"is there anything about Carl?", "You have no reminders about “Carl”."},
		{"cancel carl", "I couldn't find a reminder"},
		{"when's my next alarm", "You have no reminders about “alarm”."},
		{"how many days until christmas?", "289 days, until Fri 25 Dec 2026."},
		{"what day of the week is December 24?", "It's Thu 24 Dec 2026."},
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
		// Forms of times
		{"remind me every other day at 8am to water the orchids || list reminders", "Your reminders:\n" +
			"1. take the pills, every day at 09:00, next tomorrow at 09:00 (Europe/Berlin) [r1]\n" +
			"2. pay rent, on day 1 of every month at 10:00, next Wed 1 Apr at 10:00 (Europe/Berlin) [r2]\n" +
			"3. call mum, tomorrow at 18:00 (Europe/Berlin) [r3]\n" +
			"4. water the orchids, every 2 days at 08:00, next tomorrow at 08:00 (Europe/Berlin) [r4]"},
		{"remind me every other day at 8am to water the orchids || make it 9am", `update_schedule {"cron":"0 9 * * *",` +
			`"every_days":2,"id":"r4","timezone":"Europe/Berlin"}`},
		{"remind me to buy milk || at 6 || am", "“at 6 am” has already passed."},
		{"remind me tomorrow || about the meeting || 3pm", `schedule_once {"at":"2026-03-12T15:00:00+01:00",` +
			`"message":"the meeting","timezone":"Europe/Berlin"}`},
		{"remind me to pay Bob tomorrow at 9 || also at 6pm", `schedule_once {"at":"2026-03-12T18:00:00+01:00",` +
			`"message":"pay Bob","timezone":"Europe/Berlin"}`},
		{"also at 6pm", "I didn't understand"},
		{"start a ten minute timer for the eggs", `schedule_once {"delay_seconds":600,"message":"Timer: eggs"}`},
		{"timer 3 minutes || add two minutes", `update_schedule {"at":"2026-03-11T14:25:10+01:00","id":"r4",`},
		{"I need to call Steve at 4pm, remind me", `schedule_once {"at":"2026-03-11T16:00:00+01:00",` +
			`"message":"call Steve","timezone":"Europe/Berlin"}`},
		{"remind me to email john@example.com at 9am tomorrow", `schedule_once {"at":"2026-03-12T09:00:00+01:00",` +
			`"message":"email john@example.com","timezone":"Europe/Berlin"}`},
		{"remind me to buy a Christmas tree at 5pm", `schedule_once {"at":"2026-03-11T17:00:00+01:00",` +
			`"message":"buy a Christmas tree","timezone":"Europe/Berlin"}`},
		{"remind me on Christmas Eve at 6pm to call mum", `schedule_once {"at":"2026-12-24T18:00:00+01:00",`},
		{"remind me this weekend to wash the car", "Which day do you mean by “this weekend”?"},
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
