package grammar

import (
	"testing"
	"time"
	"unicode/utf8"
)

// For every text: no panic, either an intent or a question, a time in the future,
// and valid text.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"in 5 minutes remind me in Telegram to turn off the kettle", "remind me in an hour and a half to leave",
		"через 5 минут напомни мне в Telegram выключить чайник", "напоминай каждый понедельник в 10:00: отчёт",
		"say hi to me in Telegram", "напиши мне в Телеграм: «привет»", "cancel reminder #3",
		"remind me on 25.12.2025 at 9 p.m. to x",
		"Pending reminder (channel: telegram_channel): tea", "'", "«", "at", "in 999999 years remind me to x", "1h2m3s",
		"25th", "@9",
		"remind me every Mon, Wed and Fri at 7:30 to run", "\xff\xfe", "напомни без четверти десять",
		"remind me at 12 am to x",
	} {
		f.Add(s, int64(1763636400))
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		now := time.Unix(unix%(1<<33), 0).In(time.UTC)
		r := Parse(text, now)
		if (r.Intent == nil) == (r.Question == nil) {
			t.Fatalf("%q: intent %v, question %v", text, r.Intent, r.Question)
		}
		if r.Question != nil {
			if r.Question.Text() == "" {
				t.Fatalf("%q: empty question", text)
			}
			return
		}
		if i := r.Intent; i.Do == "remind" {
			if i.Text == "" || (utf8.ValidString(text) && !utf8.ValidString(i.Text)) {
				t.Fatalf("%q: text %q", text, i.Text)
			}
			switch w := i.When.(type) {
			case After:
				if w.Delay <= 0 {
					t.Fatalf("%q: delay %s", text, w.Delay)
				}
			case At:
				if !w.Time.After(now) {
					t.Fatalf("%q: %s is not after %s", text, w.Time, now)
				}
			case Every:
				if w.Interval < time.Minute {
					t.Fatalf("%q: interval %s", text, w.Interval)
				}
			case Cron:
			default:
				t.Fatalf("%q: no time", text)
			}
		}
		ParseTask(text)
	})
}
