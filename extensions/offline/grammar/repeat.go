package grammar

import (
	"cmp"
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
	every    int // only every n-th of the days, counted in days; 0 for all
	part     part
}

const everyDay = "*"

// repeatAtom reads a repetition at i, such as "every Monday and Friday".
func (s *scan) repeatAtom(i int) (found atom, ok bool) {
	s.timesAt("repeat", i, func(m timeMatch) {
		a := atom{kind: repeatAtom, end: m.end, repeat: repeat{days: m.flag, part: part(m.value("part"))}}
		if n, err := strconv.Atoi(strings.TrimSuffix(m.flag, "d")); err == nil && strings.HasSuffix(m.flag, "d") {
			a.repeat.days, a.repeat.every = cmp.Or(cronDays(m.slots["days"]), everyDay), n
		}
		switch m.flag {
		case "2d or once": // "напомни через день" is not "напоминай через день"
			a.repeat.days, a.repeat.every = everyDay, 2
			if !slices.ContainsFunc(s.toks, func(t token) bool {
				return slices.Contains(languages().phrases["habitually"], t.norm)
			}) {
				a.problem = Vague
			}
		case "hourly":
			a.repeat = repeat{interval: time.Hour}
		case "no_rule":
			a.problem = NoRule
		case "days":
			a.repeat.days = cronDays(m.slots["days"])
		case "month":
			a.repeat.days = everyDay
			a.repeat.monthDay = max(m.number("d"), m.value("ordinal"), m.value("genitive_ordinal"))
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
	case sp.months > 0, sp.days > 0 && sp.exact > 0:
		return repeat{}, NoRule
	case sp.days > 366:
		return repeat{}, TooFar
	case sp.days > 0:
		return repeat{days: everyDay, every: sp.days}, ""
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
	every := r.every
	if every == 1 {
		every = 0
	}
	return Cron{Expr: fmt.Sprintf("%d %d %s * %s", minute, hour, monthDay, r.days), Days: every}
}
