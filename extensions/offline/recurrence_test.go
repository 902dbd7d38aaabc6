package offline

import (
	"testing"

	"github.com/switchboard-run/switchboard/extensions/offline/grammar"
)

func TestRecurrence(t *testing.T) {
	t.Parallel()
	for timing, want := range map[string][2]string{
		`cron "0 9 * * *" (Europe/Berlin)`: {"every day at 09:00", "каждый день в 09:00"},
		`cron "30 8 * * 1" (Etc/UTC)`:      {"every Mon at 08:30", "по пн в 08:30"},
		`cron "30 8 * * 1,3" (Etc/UTC)`:    {"every Mon, Wed at 08:30", "по пн, ср в 08:30"},
		`cron "30 18 * * 1,2,3,4,5" (Etc/UTC), until Fri 1 Jan 2027 23:59 (Etc/UTC)`: {
			"every Mon to Fri at 18:30, until Fri 1 Jan 2027 23:59 (Etc/UTC)",
			"по пн–пт в 18:30, до пт 1 января 2027 23:59 (Etc/UTC)",
		},
		`cron "0 10 5 * *" (Etc/UTC)`:  {"on day 5 of every month at 10:00", "5-го числа каждого месяца в 10:00"},
		`cron "0 10 5 * 1" (Etc/UTC)`:  {`cron "0 10 5 * 1" (Etc/UTC)`, `cron "0 10 5 * 1" (Etc/UTC)`},
		`cron "*/5 * * * *" (Etc/UTC)`: {`cron "*/5 * * * *" (Etc/UTC)`, `cron "*/5 * * * *" (Etc/UTC)`},
		"every 2 h":                    {"every 2 hours", "каждые 2 часа"},
		"every 1 h":                    {"every hour", "каждый час"},
		"every 1 min":                  {"every minute", "каждую минуту"},
		"every 1 d":                    {"every day", "каждый день"},
		"every 21 min":                 {"every 21 minutes", "каждые 21 минуту"},
		"every 1 h 30 min":             {"every 1 hour 30 minutes", "каждые 1 час 30 минут"},
		"every 3 d 12 s":               {"every 3 days 12 seconds", "каждые 3 дня 12 секунд"},
		"every 5 min, until Fri 1 Jan 2027 23:59 (Etc/UTC)": {
			"every 5 minutes, until Fri 1 Jan 2027 23:59 (Etc/UTC)",
			"каждые 5 минут, до пт 1 января 2027 23:59 (Etc/UTC)",
		},
		"every full moon": {"every full moon", "every full moon"},
	} {
		for i, w := range []phrases{{grammar.English}, {grammar.Russian}} {
			if got := w.recurrence(timing); got != want[i] {
				t.Errorf("%s: %q, want %q", timing, got, want[i])
			}
		}
	}
}
