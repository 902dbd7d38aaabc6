package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTheCalendarHasWhatIsDue(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.must("schedule_once", `{"message":"tea","at":"2000-01-03T09:00"}`, by(anna))
		b.must("schedule_recurring", `{"message":"news","cron":"0 9 * * *","until":"2000-01-20"}`, by(anna))
		b.must("schedule_recurring", `{"message":"often","every_seconds":60}`, by(anna))
		b.must("schedule_recurring", `{"message":"rest","cron":"0 10 * * *"}`, by(anna))
		b.must("update_schedule", `{"id":"r4","action":"pause"}`, by(anna))
		b.must("schedule_once", `{"message":"his","delay_seconds":60}`, by(boris))
		b.must("schedule_once", `{"message":"over","delay_seconds":60}`, by(anna))
		b.pass(2 * time.Minute)
		out := b.must("calendar", `{"days":3}`, by(anna))
		var got []string
		for _, s := range out["schedules"].([]any) {
			s := s.(map[string]any)
			due, _ := s["due"].([]any)
			if len(due) > 3 {
				due = []any{len(due), due[0]}
			}
			got = append(got, fmt.Sprint(s["id"], " at ", s["at"], " cron ", s["cron"], " every ", s["every_seconds"], " until ",
				s["until"], " due ", due, " more ", s["more"]))
		}
		want := []string{
			"r3 at <nil> cron <nil> every 60 until <nil> due [100 2000-01-01T00:03:00Z] more true",
			"r2 at <nil> cron 0 9 * * * every <nil> until 2000-01-20T23:59 due [2000-01-01T08:00:00Z 2000-01-02T08:00:00Z " +
				"2000-01-03T08:00:00Z] more <nil>",
			"r1 at 2000-01-03T09:00 cron <nil> every <nil> until <nil> due [2000-01-03T08:00:00Z] more <nil>",
			"r4 at <nil> cron 0 10 * * * every <nil> until <nil> due [] more <nil>",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		// From a time on.
		out = b.must("calendar", `{"days":1,"from":"2000-01-03T00:00:00Z"}`, by(boris))
		if len(out["schedules"].([]any)) != 0 {
			t.Errorf("another person sees %v", out)
		}
		for _, arguments := range []string{`{}`, `{"days":32}`, `{"days":-1}`} {
			if out, err := b.call("calendar", arguments); err == nil {
				t.Errorf("%s: %v", arguments, out)
			}
		}
	})
}
