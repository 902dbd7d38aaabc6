package e2e

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// A button of a reminder is applied once, wherever the kernel dies, and also if it is
// pressed twice. A reply to the reminder then moves that one, and no other.
func TestReminderButtonIsAppliedOnce(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before 1", "after 1", "after 2", "after 3"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withTelegram())
			w.start()
			w.telegramReady()
			w.telegram.Say(anna, "remind me tomorrow at 9:00 to feed the cat")
			w.told(anna, 1)
			w.telegram.Say(anna, "remind me in 1 second to drink tea")
			w.told(anna, 3)
			w.settled()
			reminder := w.telegram.Messages(anna)[2]
			if reminder.Text != "⏰ drink tea" {
				t.Fatalf("the reminder is %q", reminder.Text)
			}
			w.crash()
			w.env["SWITCHBOARD_CRASH"], w.env["SWITCHBOARD_CRASH_FROM"] = point, "user.message"
			w.start()
			w.telegramReady()
			w.press("+10 min")
			w.telegram.Press(anna, reminder.ID, "+10 min", telegramtest.User{ID: anna, FirstName: "Anna"})
			w.eventually("the death of the kernel", func() bool {
				select {
				case <-w.kernel.ended:
					return true
				default:
					return false
				}
			})
			delete(w.env, "SWITCHBOARD_CRASH")
			w.start()
			w.telegramReady()
			said := func() string { return strings.Join(w.texts(anna), "\n") }
			w.eventually("the answer", func() bool { return strings.Contains(said(), "OK, I'll remind you again ") })
			w.settled()
			w.buttonsGone()
			pending := list[[]scheduled](w, "schedules", "list")
			if len(pending) != 2 {
				t.Errorf("the schedules are %+v", pending)
			}
			w.telegram.Inject(telegramtest.Incoming{From: telegramtest.User{ID: anna, FirstName: "Anna"},
				Text: "move this to tomorrow at 18:00", ReplyTo: reminder.ID})
			w.eventually("the change", func() bool {
				return strings.Contains(said(), "Changed: drink tea, tomorrow at 18:00 (Europe/Berlin) [r2]")
			})
			for _, s := range list[[]scheduled](w, "schedules", "list") {
				if want := map[string]string{"r1": "09:00", "r2": "18:00"}[s.ID]; s.Next == nil ||
					s.Next.In(berlin(t)).Format("15:04") != want {
					t.Errorf("%s comes at %v, want %s", s.ID, s.Next, want)
				}
			}
		})
	}
}
