package offline

import "testing"

func TestRhythm(t *testing.T) {
	t.Parallel()
	for timing, want := range map[string][2]string{
		`cron "0 9 * * *" (Europe/Berlin)`:                           {"every day at 09:00", "каждый день в 09:00"},
		`cron "30 8 * * 1" (Etc/UTC)`:                                {"every Mon at 08:30", "по пн в 08:30"},
		`cron "30 8 * * 1,3" (Etc/UTC)`:                              {"every Mon, Wed at 08:30", "по пн, ср в 08:30"},
		`cron "30 18 * * 1,2,3,4,5" (Etc/UTC), until Fri 1 Jan 2027`: {"every Mon to Fri at 18:30, until Fri 1 Jan 2027", "по пн–пт в 18:30, until Fri 1 Jan 2027"},
		`cron "0 10 5 * *" (Etc/UTC)`:                                {"on day 5 of every month at 10:00", "5-го числа каждого месяца в 10:00"},
		`cron "0 10 5 * 1" (Etc/UTC)`:                                {`cron "0 10 5 * 1" (Etc/UTC)`, `cron "0 10 5 * 1" (Etc/UTC)`},
		`cron "*/5 * * * *" (Etc/UTC)`:                               {`cron "*/5 * * * *" (Etc/UTC)`, `cron "*/5 * * * *" (Etc/UTC)`},
		"every 2 h":                                                  {"every 2 h", "every 2 h"},
	} {
		for i, w := range []phrases{english, russian} {
			if got := w.rhythm(timing); got != want[i] {
				t.Errorf("%s: %q, want %q", timing, got, want[i])
			}
		}
	}
}
