package offline

import (
	"strings"
	"testing"
	"time"
)

// replyTo is what the person says in reply to a message of the assistant.
func replyTo(quoted, text string) string {
	return "[quoted from you]\n~~~\n" + quoted + "\n~~~\n" + text
}

// withFired adds a reminder that came an hour ago, and a newer one that came since.
func withFired(t *testing.T, text string) *world {
	t.Helper()
	w := newWorld(t, text)
	tea, mail := "drink tea", "check the mail"
	if strings.ContainsAny(text, "абвгдежзийклмнопрстуфхцчшщыэюя") {
		tea, mail = "выпить чай", "проверить почту"
	}
	at := func(ago time.Duration) *time.Time { came := w.now.Add(-ago); return &came }
	w.schedules = append(w.schedules,
		&planned{ID: "r4", Kind: "once", State: "done", Message: tea, Timezone: "Europe/Berlin", LastFired: at(time.Hour)},
		&planned{ID: "r5", Kind: "once", State: "done", Message: mail, Timezone: "Europe/Berlin", LastFired: at(time.Minute)},
		&planned{ID: "r6", Kind: "once", State: "done", Message: tea, Timezone: "Europe/Berlin", LastFired: at(72 * time.Hour)})
	w.deliver("⏰ " + tea)
	w.deliver("⏰ " + mail)
	return w
}

func TestAReplyToAReminderChangesThatOne(t *testing.T) {
	t.Parallel()
	const six, tomorrow = `"at":"2026-03-11T18:00:00+01:00"`, `"at":"2026-03-12T09:00:00+01:00"`
	for _, tt := range []struct{ quoted, said, tool, id, want string }{
		{"⏰ drink tea", "move this to six", "update_schedule", "r4", six},
		{"⏰ drink tea", "Move this to 6pm.", "update_schedule", "r4", six},
		{"⏰ drink tea (late: was due 13:20)", "move it to six", "update_schedule", "r4", six},
		{"⏰ drink tea\n\nDone: /done r4.1\n+10 min: /snooze r4.1 10m", "move this to six", "update_schedule", "r4", six},
		{"⏰ drink tea", "at six", "update_schedule", "r4", six},
		{"⏰ drink tea", "tomorrow at 9am", "update_schedule", "r4", tomorrow},
		{"⏰ drink tea", "snooze 10 minutes", "update_schedule", "r4", `"delay_seconds":600`},
		{"⏰ drink tea", "postpone this by an hour", "update_schedule", "r4", `"at":"2026-03-11T15:20:10+01:00"`},
		{"OK, I'll remind you on Thursday at 18:00 (Europe/Berlin): call mum [r3]", "move this to seven", "update_schedule", "r3",
			`"at":"2026-03-12T19:00:00+01:00"`},
		{"OK, I'll remind you on Thursday at 18:00 (Europe/Berlin): call mum [r3]", "cancel this", "cancel_schedule", "r3", ""},
		{"⏰ take the pills", "snooze 10 minutes", "schedule_once", "", `"message":"take the pills"`},
		{"⏰ выпить чай", "перенеси это на шесть", "update_schedule", "r4", six},
		{"⏰ выпить чай", "Перенеси на 18:00", "update_schedule", "r4", six},
		{"⏰ выпить чай", "завтра в 9 утра", "update_schedule", "r4", tomorrow},
		{"⏰ выпить чай", "отложи на 10 минут", "update_schedule", "r4", `"delay_seconds":600`},
		{"⏰ выпить чай (с опозданием, должно было прийти в 13:20)", "перенеси это на шесть", "update_schedule", "r4", six},
		{"Хорошо, напомню в чт в 18:00: позвонить маме [r3]", "отмени это", "cancel_schedule", "r3", ""},
	} {
		w := withFired(t, tt.said)
		answer := w.say(replyTo(tt.quoted, tt.said))
		if len(w.did) != 1 || !strings.HasPrefix(w.did[0], tt.tool+" ") || !strings.Contains(w.did[0], tt.want) ||
			tt.id != "" && !strings.Contains(w.did[0], `"id":"`+tt.id+`"`) {
			t.Errorf("%q on %q: %q did %q, want %s %s %s", tt.said, tt.quoted, answer, w.did, tt.tool, tt.id, tt.want)
		}
	}
}

// If it is not sure which one is meant, nothing changes, and the answer asks.
func TestAReplyThatFitsNoReminderAsks(t *testing.T) {
	t.Parallel()
	for _, quoted := range []string{
		"[quoted from you]\n~~~\nThe weather is fine.\n~~~\n",
		"[quoted from you]\n~~~\n⏰ feed the cat\n~~~\n",
		"[quoted from you]\n~~~\nYour reminders:\n1. take the pills [r1]\n2. pay rent [r2]\n~~~\n",
		"[quoted from you]\n~~~\nOK: gone [r77]\n~~~\n",
		"[quoted from Boris]\n~~~\n⏰ drink tea\n~~~\n",
		"[quoted from Boris]\n~~~\nOK [r3]\n~~~\n",
		"[quoted from you]\n~~~~\n⏰ drink tea\n~~~\nmove this to five\n~~~~\n",
	} {
		for _, said := range []string{"move this to six", "cancel this", "snooze 10 minutes", "postpone it by an hour", "undo", "at six"} {
			w := withFired(t, "move")
			answer := w.say(quoted + said)
			if len(w.did) > 0 {
				t.Errorf("%q on %q: %q did %q", said, quoted, answer, w.did)
			}
		}
	}
	w := withFired(t, "move")
	if answer := w.say(replyTo("⏰ feed the cat", "move this to six")); !strings.Contains(answer, "Which") {
		t.Errorf("it asks %q", answer)
	}
}

// Of two reminders with one text it asks, and the answer is taken.
func TestAReplyThatFitsTwoAsksWhich(t *testing.T) {
	t.Parallel()
	w := withFired(t, "move")
	w.schedules[4].Message = "drink tea"
	answer := w.say(replyTo("⏰ drink tea", "move this to six"))
	if len(w.did) > 0 || !strings.Contains(answer, "[r4]") || !strings.Contains(answer, "[r5]") || strings.Contains(answer, "[r3]") {
		t.Fatalf("it did %q and asks %q", w.did, answer)
	}
	w.say("the second one")
	if len(w.did) != 1 || !strings.Contains(w.did[0], `"id":"r5"`) {
		t.Errorf("it did %q", w.did)
	}
}

// What a reply names itself is meant, not the quoted one.
func TestAReplyThatNamesAnotherReminder(t *testing.T) {
	t.Parallel()
	w := withFired(t, "move")
	answer := w.say(replyTo("⏰ drink tea", "move mum to 7pm"))
	if len(w.did) != 1 || !strings.Contains(w.did[0], `"id":"r3"`) {
		t.Errorf("it did %q and says %q", w.did, answer)
	}
}

// A reaction is no request, and a quote in an earlier turn is no part of what was said.
func TestReactionsAreSilent(t *testing.T) {
	t.Parallel()
	w := withFired(t, "move")
	if answer := w.say("[quoted from you]\n~~~\n⏰ drink tea\n~~~\n[reaction from Anna]\n~~~\n👍\n~~~"); len(w.did) > 0 ||
		strings.Contains(answer, "👍") {
		t.Errorf("it did %q and says %q", w.did, answer)
	}
}
