package e2e

import (
	"strings"
	"testing"
)

// What a person says refers to what was said before, also when the kernel was killed
// in between, and a change can be taken back.
func TestSentencesReferToWhatWasSaidBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	p := w.attach()
	contains(t, "the reminder", p.ask("remind me tomorrow at 10 to call Bob"), "tomorrow at 10:00", "call Bob [r1]")
	w.restart()
	p = w.attach()
	contains(t, "the correction", p.ask("no, at 11"), "Changed: call Bob, tomorrow at 11:00")
	contains(t, "the cancellation", p.ask("cancel it"), "Cancelled: call Bob [r1]")
	contains(t, "the undo", p.ask("no, bring it back"), "Restored: call Bob, tomorrow at 11:00")
	p.ask("remind me tomorrow at 12 to call Eve")
	contains(t, "the list", p.ask("list reminders"), "1. call Bob", "2. call Eve")
	contains(t, "the choice", p.ask("cancel the second one"), "Cancelled: call Eve [r2]")
	p.ask("undo")
	contains(t, "the question", p.ask("cancel everything"), "Cancel all 2 reminders?")
	contains(t, "the refusal", p.ask("no"), "I changed nothing")
	contains(t, "the question", p.ask("cancel everything"), "Cancel all 2 reminders?")
	contains(t, "the answer", p.ask("yes"), "Cancelled: call Bob [r1]", "Cancelled: call Eve [r2]")
	contains(t, "the memory", p.ask("remember I am allergic to nuts"), "I am allergic to nuts [m")
	contains(t, "the undo", p.ask("undo"), "Forgotten: I am allergic to nuts")
}

// Every tool takes what the offline model gives it.
func TestToolsTakeWhatTheOfflineModelGives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	p := w.attach()
	for _, said := range [][2]string{
		{"remind me every day at 9 to take the pills", "every day at 09:00"},
		{"move the pills to 10", "Changed: take the pills, every day at 10:00"},
		{"undo", "Restored: take the pills, every day at 09:00"},
		{"rename the pills to vitamins", "Changed: vitamins"},
		{"pause the vitamins", "paused"},
		{"resume the vitamins", "Changed: vitamins, every day at 09:00"},
		{"timer 10 minutes", "Timer: 10 minutes"},
		{"make it 20 minutes", "Changed: Timer"},
		{"how much time is left?", "Next: "},
		{"wake me up at 7", "Alarm: 07:00"},
		{"add milk to my shopping list", "shopping list: milk"},
		{"what's on my shopping list?", "shopping list: milk (to do"},
		{"remember my wife's name is Anna", "my wife's name is Anna"},
		{"what's my wife's name?", "my wife's name is Anna ("},
		{"forget my wife's name", "Forgotten: my wife's name is Anna"},
		{"undo", "my wife's name is Anna"},
		{"what do you know about my wife?", "my wife's name is Anna ("},
		{"when is my wife's birthday?", "I don't remember anything about “wife's birthday”"},
		{"remember my shoe size is 42", "my shoe size is 42 [m"},
		{"oops, 43", "I'll remember: my shoe size is 43 [m"},
		{"what is my shoe size?", "my shoe size is 43 ("},
		{"undo", "my shoe size is 42 [m"},
		{"what is my shoe size?", "my shoe size is 42 ("},
		{"remind me every other day at 8:00 to water the orchids", "every 2 days at 08:00"},
		{"move the orchids to 9:00", "Changed: water the orchids, every 2 days at 09:00"},
		{"/schedules", "“water the orchids”"},
	} {
		contains(t, said[0], p.ask(said[0]), said[1])
	}
}

// A reminder says that it is one; a message that was only to be sent later does not.
func TestRemindersAreMarked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.start()
	w.telegramReady()
	p := w.attach()
	contains(t, "the promise", p.ask("in 1 second say hi to me in Telegram"), "OK, I'll send this to Telegram")
	if got := w.told(anna, 1).Text; got != "Hi" {
		t.Errorf("the message is %q", got)
	}
	p.ask("in 1 second remind me in Telegram to turn off the kettle")
	// Without buttons, the commands follow.
	if got, _, _ := strings.Cut(w.told(anna, 2).Text, "\n\n"); got != "⏰ turn off the kettle" {
		t.Errorf("the reminder is %q", got)
	}
}

// A reply to a reminder changes that one, though another was talked about since, also when
// the kernel was killed in between. One to a confirmation changes what that set.
func TestReplyToAReminderChangesThatOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config("channels: {poster: {allow_from: [me]}}")
	w.probe("poster", "poster", "provides: {channel: {}}\npermissions: {publish: [user.message], blobs: true}")
	w.start()
	w.post("remind me in 1 second to drink tea", nil)
	w.posterSent("⏰ drink tea")
	w.post("remind me tomorrow at 9:00 to feed the cat", nil)
	w.posterSent("feed the cat [r2]")
	w.restart()
	w.replyTo("⏰ drink tea", "move this to tomorrow at 18:00")
	w.posterSent("Changed: drink tea, tomorrow at 18:00 (Europe/Berlin) [r1]")
	w.post("напомни завтра в 10:00 позвонить маме", nil)
	w.posterSent("позвонить маме [r3]")
	w.replyTo("OK, I'll remind you tomorrow at 09:00 (Europe/Berlin): feed the cat [r2]", "перенеси это на завтра в 11:00")
	w.posterSent("завтра в 11:00 (Europe/Berlin) [r2]")
	w.replyTo("The weather is fine.", "move this to tomorrow at 12:00")
	w.posterSent("Which one?")
	for _, s := range list[[]scheduled](w, "schedules", "list") {
		if want := map[string]string{"r1": "18:00", "r2": "11:00", "r3": "10:00"}[s.ID]; s.Next == nil ||
			s.Next.In(berlin(t)).Format("15:04") != want {
			t.Errorf("%s comes at %v, want %s", s.ID, s.Next, want)
		}
	}
}
