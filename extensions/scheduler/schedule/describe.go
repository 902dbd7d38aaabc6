package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// LocalTime formats an instant for people, with date and zone.
func LocalTime(t time.Time, loc *time.Location) string {
	layout := "Mon 2 Jan 2006 15:04"
	if t.Second() != 0 {
		layout = "Mon 2 Jan 2006 15:04:05"
	}
	return t.In(loc).Format(layout) + " (" + loc.String() + ")"
}

// Span formats a duration for people, exact to the second: an hour and a half is
// "1 h 30 min", not "1 h".
func Span(d time.Duration) string {
	d = d.Round(time.Second)
	if d < time.Second {
		return "less than a second"
	}
	var parts []string
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := d / unit.size; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, unit.name))
			d -= n * unit.size
		}
	}
	return strings.Join(parts, " ")
}

// Timing describes when a schedule fires.
func (s Schedule) Timing() string {
	var text string
	switch {
	case s.Kind == Once && s.At != nil:
		return "once, " + LocalTime(*s.At, s.Location())
	case s.Cron != "":
		text = "cron " + strconv.Quote(s.Cron) + " (" + s.Timezone + ")"
		if s.EveryDays > 1 {
			text += fmt.Sprintf(", every %d days", s.EveryDays)
		}
	default:
		text = "every " + Span(seconds(s.EverySeconds))
	}
	if s.Until != nil {
		text += ", until " + LocalTime(*s.Until, s.Location())
	}
	return text
}

// lateNote is the end of a late message.
func (s Schedule) lateNote(d Decision, now time.Time) string {
	loc := s.Location()
	due, today := d.Due.In(loc), now.In(loc)
	text := "late: was due " + due.Format("15:04")
	switch {
	case due.Year() != today.Year():
		text += due.Format(" on Mon 2 Jan 2006")
	case due.YearDay() != today.YearDay():
		text += due.Format(" on Mon 2 Jan")
	}
	if s.Kind == Recurring && d.Skipped > 0 {
		text += fmt.Sprintf("; %d earlier skipped", d.Skipped)
	}
	return "(" + text + ")"
}
