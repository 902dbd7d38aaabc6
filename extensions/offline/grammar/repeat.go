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

const (
	everyDay = "*"
	workdays = "1-5"
	weekend  = "0,6"
)

func (s *scan) repeatAtom(i int) (atom, bool) {
	found := func(end int, r repeat) (atom, bool) {
		return atom{kind: repeatAtom, end: end, repeat: r}, true
	}
	refuse := func(end int, reason Reason) (atom, bool) {
		return atom{kind: repeatAtom, end: end, problem: reason}, true
	}
	if end, ok := s.words(i, "daily"); ok {
		return found(end, repeat{days: everyDay})
	}
	if end, ok := s.words(i, "hourly"); ok {
		return found(end, repeat{interval: time.Hour})
	}
	if end, ok := s.words(i, "without_day"); ok {
		return refuse(end, NoRule)
	}
	if end, ok := s.words(i, "on_weekdays"); ok {
		return found(end, repeat{days: workdays})
	}
	if end, ok := s.words(i, "on_weekends"); ok {
		return found(end, repeat{days: weekend})
	}
	if end, ok := s.times(i); ok {
		return refuse(end, NoRule)
	}
	if s.oneOf(i, "on_days") {
		if days, end, ok := s.weekdayList(i+1, "weekdays"); ok {
			return found(end, repeat{days: cronDays(days)})
		}
	}
	if d, end, ok := s.eachMonth(i); ok {
		return monthly(d, end)
	}
	if j, ok := s.words(i, "once_in"); ok {
		if sp, end, ok := s.span(j); ok {
			return interval(sp, end)
		}
		return atom{}, false
	}
	if !s.oneOf(i, "each") {
		return atom{}, false
	}
	return s.every(i + 1)
}

// times recognizes "twice a day", "3 раза в день", which don't name the hours.
func (s *scan) times(i int) (int, bool) {
	j := i
	if s.oneOf(j, "twice") {
		j++
	} else {
		_, k, ok := s.integer(i)
		if !ok || !s.oneOf(k, "times") {
			return 0, false
		}
		j = k + 1
	}
	if !s.oneOf(j, "per") || !s.unitHere(j+1) {
		return 0, false
	}
	return j + 2, true
}

// every reads the words after "every".
func (s *scan) every(i int) (atom, bool) {
	found := func(end int, r repeat) (atom, bool) {
		return atom{kind: repeatAtom, end: end, repeat: r}, true
	}
	refuse := func(end int) (atom, bool) {
		return atom{kind: repeatAtom, end: end, problem: NoRule}, true
	}
	if s.oneOf(i, "every_other") &&
		(s.unitHere(i+1) || s.value("weekday", i+1) > 0) {
		return refuse(i + 2)
	}
	if end, ok := s.words(i, "weekday"); ok {
		return found(end, repeat{days: workdays})
	}
	if end, ok := s.words(i, "weekend"); ok {
		return found(end, repeat{days: weekend})
	}
	if p := s.value("part", i); p > 0 {
		return found(i+1, repeat{days: everyDay, part: part(p)})
	}
	if days, end, ok := s.weekdayList(i, "weekday"); ok {
		r := repeat{days: cronDays(days)}
		if p := s.value("part", end); p > 0 && s.lang == English {
			r.part = part(p)
			end++
		}
		return found(end, r)
	}
	if d, k, ok := s.dayNumber(i); ok && s.oneOf(k, "day_of_month") {
		k++
		if end, ok := s.words(k, "of_month"); ok {
			k = end
		}
		return monthly(d, k)
	}
	if s.oneOf(i, "month") {
		if s.oneOf(i+1, "on_date") && s.oneOf(i+2, "the") {
			if d, end, ok := s.dayNumber(i + 3); ok {
				return monthly(d, end)
			}
		}
		if d, k, ok := s.dayNumber(i + 1); ok {
			if s.oneOf(k, "of_this_month") {
				k++
			}
			return monthly(d, k)
		}
		return refuse(i + 1)
	}
	if sp, end, ok := s.span(i); ok {
		return interval(sp, end)
	}
	return atom{}, false
}

// eachMonth reads "on the 5th of every month" and "5 числа каждого месяца".
func (s *scan) eachMonth(i int) (int, int, bool) {
	j := i
	if s.oneOf(j, "on_date") {
		j++
	}
	if s.oneOf(j, "the") {
		j++
	}
	d, j, ok := s.dayNumber(j)
	if !ok {
		return 0, i, false
	}
	end, ok := s.words(j, "of_every_month")
	return d, end, ok
}

func monthly(d, end int) (atom, bool) {
	a := atom{kind: repeatAtom, end: end, repeat: repeat{days: everyDay, monthDay: d}}
	if d > 28 {
		a.problem = NotEveryMonth
	}
	return a, true
}

func interval(sp span, end int) (atom, bool) {
	a := atom{kind: repeatAtom, end: end, problem: sp.problem}
	switch {
	case sp.problem != "":
	case sp == span{days: 1}:
		a.repeat.days = everyDay
	case sp.calendar():
		a.problem = NoRule
	case sp.exact < time.Minute:
		a.problem = TooOften
	default:
		a.repeat.interval = sp.exact
	}
	return a, true
}

// weekdayList reads "Monday, Wednesday and Friday". The later days may repeat
// the preposition or "every".
func (s *scan) weekdayList(i int, names string) ([]int, int, bool) {
	var days []int
	end := i
	for j := i; ; {
		wd := s.value(names, j)
		if wd == 0 && (len(days) > 0 || s.lang == English || !s.is(j+1, stop)) {
			wd = s.value("brief_weekday", j)
		}
		if wd == 0 || len(days) == 14 {
			return days, end, len(days) > 0
		}
		days = append(days, wd)
		j++
		end = j
		if s.is(j, comma) {
			j++
		}
		if s.oneOf(j, "and") {
			j++
		}
		if j == end {
			return days, end, true
		}
		if s.oneOf(j, "each") || s.oneOf(j, "on_days") {
			j++
		}
	}
}

func cronDays(days []int) string {
	for i, d := range days {
		days[i] = d % 7
	}
	slices.Sort(days)
	days = slices.Compact(days)
	out := make([]string, len(days))
	for i, d := range days {
		out[i] = strconv.Itoa(d)
	}
	return strings.Join(out, ",")
}

// cron returns the expression for the repetition at a time of day.
func (r repeat) cron(hour, minute int) Cron {
	monthDay := "*"
	if r.monthDay > 0 {
		monthDay = strconv.Itoa(r.monthDay)
	}
	return Cron{Expr: fmt.Sprintf("%d %d %s * %s", minute, hour, monthDay, r.days)}
}
