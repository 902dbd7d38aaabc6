package schedule

import (
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
)

// Timing describes when a schedule fires.
func (s Schedule) Timing() string {
	var text string
	switch {
	case s.Kind == Once && s.At != nil:
		return words.Sprintf("once, %v", words.LocalTime(*s.At, s.Location()))
	case s.Cron != "" && s.EveryDays > 1:
		text = words.Sprintf("cron %q (%s), every %d days", s.Cron, s.Timezone, s.EveryDays)
	case s.Cron != "":
		text = words.Sprintf("cron %q (%s)", s.Cron, s.Timezone)
	default:
		text = words.Sprintf("every %v", words.Span(seconds(s.EverySeconds)))
	}
	if s.Until != nil {
		return words.Sprintf("%v, until %v", text, words.LocalTime(*s.Until, s.Location()))
	}
	return text
}

// lateNote is the end of a late message.
func (s Schedule) lateNote(d Decision, now time.Time) string {
	loc := s.Location()
	due, today := d.Due.In(loc), now.In(loc)
	say := func(text string, args ...any) string { return words.Say(s.Language, text, args...) }
	at := due.Format("15:04")
	text := say("late: was due %s", at)
	switch {
	case due.Year() != today.Year():
		text = say("late: was due %s on %s", at, say(due.Format("Mon"))+" "+words.Day(s.Language, due))
	case due.YearDay() != today.YearDay():
		text = say("late: was due %s on %s", at, say(due.Format("Mon"))+" "+due.Format(say("2 Jan")))
	}
	if s.Kind == Recurring && d.Skipped > 0 {
		text += "; " + words.Count(s.Language, "%d earlier skipped", "%d earlier skipped", int(d.Skipped), d.Skipped)
	}
	return "(" + text + ")"
}
