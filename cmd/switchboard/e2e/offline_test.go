package e2e

import "testing"

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
	if got := w.told(anna, 2).Text; got != "⏰ Reminder: turn off the kettle" {
		t.Errorf("the reminder is %q", got)
	}
}
