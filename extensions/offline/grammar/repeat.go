package grammar

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// repeat is a repetition: an interval, or days at a time of day.
type repeat struct {
	interval time.Duration
	days     string // day-of-week field of a cron expression; "" with an interval
	monthDay int
	part     part
}

const everyDay = "*"

// repeatAtom reads a repetition at i, such as "every Monday and Friday".
func (s *scan) repeatAtom(i int) (found atom, ok bool) {
	s.timesAt("repeat", i, func(m timeMatch) {
		a := atom{kind: repeatAtom, end: m.end, repeat: repeat{days: m.flag, part: part(m.value("part"))}}
		switch m.flag {
		case "hourly":
			a.repeat = repeat{interval: time.Hour}
		case "no_rule":
			a.problem = NoRule
		case "days":
			a.repeat.days = cronDays(m.slots["days"])
		case "month":
			a.repeat.days, a.repeat.monthDay = everyDay, m.number("d")
			if a.repeat.monthDay > 28 {
				a.problem = NotEveryMonth
			}
		case "span":
			sp, end, isSpan := s.span(m.end)
			if !isSpan {
				return
			}
			a.repeat, a.problem = interval(sp)
			a.end = end
		}
		if !ok || a.end > found.end {
			found, ok = a, true
		}
	})
	return found, ok
}

func interval(sp span) (repeat, Reason) {
	switch {
	case sp.problem != "":
		return repeat{}, sp.problem
	case sp == span{days: 1}:
		return repeat{days: everyDay}, ""
	case sp.calendar():
		return repeat{}, NoRule
	case sp.exact < time.Minute:
		return repeat{}, TooOften
	}
	return repeat{interval: sp.exact}, ""
}

// cronDays returns the field of a cron expression for weekdays.
func cronDays(text string) string {
	var days []string
	for word := range strings.FieldsSeq(text) {
		for _, section := range []string{"weekday", "brief_weekday", "weekdays"} {
			if d := languages().values[section][word]; d > 0 {
				days = append(days, strconv.Itoa(d%7))
			}
		}
	}
	slices.Sort(days)
	return strings.Join(slices.Compact(days), ",")
}

// cron returns the expression for the repetition at a time of day.
func (r repeat) cron(hour, minute int) Cron {
	monthDay := "*"
	if r.monthDay > 0 {
		monthDay = strconv.Itoa(r.monthDay)
	}
	return Cron{Expr: fmt.Sprintf("%d %d %s * %s", minute, hour, monthDay, r.days)}
}
