package grammar

import (
	"slices"
	"strconv"
	"time"

	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// dayRef is a day as the person wrote it.
type dayRef struct {
	offset  int // days from today, if weekday and month are not set
	weekday int // 1 to 7 for Monday to Sunday
	which   string
	year    int
	month   time.Month
	day     int
	part    part
}

var (
	isoDate   = pattern.New(`^(\d{4})-(\d{2})-(\d{2})$`)
	dotDate   = pattern.New(`^(\d{1,2})\.(\d{1,2})(?:\.(\d{4}))?$`)
	slashDate = pattern.New(`^\d{1,2}/\d{1,2}(/\d{2,4})?$`)
)

// weakDays are the kinds of days that may be part of a text: "buy a Christmas tree".
var weakDays = map[string]bool{"weak": true, "bare": true, "holiday": true, "ambiguous_day": true, "-1": true}

// dayAtom reads a day at i: "tomorrow evening", "on Friday", "the 5th of May".
func (s *scan) dayAtom(i int) (found atom, ok bool) {
	found, ok = s.numericDate(i)
	s.timesAt("day", i, func(m timeMatch) {
		a := atom{kind: dayAtom, end: m.end, weak: weakDays[m.flag]}
		a.day.part = part(max(m.value("part"), m.value("part_of_today")))
		switch m.flag {
		case "weekday", "weak", "bare":
			if m.flag == "bare" && !s.clockFollows(m.end) {
				return
			}
			a.day.weekday = max(m.value("weekday"), m.value("brief_weekday"))
			switch which := m.slots["which"]; {
			case slices.Contains(languages().phrases["next"], which):
				a.day.which = "next"
			case which != "":
				a.day.which = "this"
			}
		case "date", "holiday":
			month, d := m.value("month"), max(m.number("d"), m.value("ordinal"), m.value("genitive_ordinal"))
			if holiday := m.value("holiday"); holiday > 0 { // 1224 is December 24
				month, d = holiday/100, holiday%100
			}
			a = checkDate(a, m.end, m.number("year"), month, d)
		case string(NoMonth), string(AmbiguousDay):
			a.problem = Reason(m.flag)
		default:
			a.day.offset, _ = strconv.Atoi(m.flag)
		}
		if !ok || a.end > found.end {
			found, ok = a, true
		}
	})
	return found, ok
}

// clockFollows accepts a bare Russian weekday only before a time: "пятница, 10:00".
func (s *scan) clockFollows(i int) bool {
	if s.is(i, comma) {
		i++
	}
	return digital.MatchString(s.at(i))
}

// numericDate reads a date in digits at i: 2025-12-25, 25.12.2025, 25.12.
func (s *scan) numericDate(i int) (atom, bool) {
	a := atom{kind: dayAtom}
	j := i
	if s.oneOf(i, "on") {
		j++
	}
	number := func(text string) int {
		n, _ := strconv.Atoi(text)
		return n
	}
	w := s.at(j)
	if m := isoDate.FindStringSubmatch(w); m != nil {
		return checkDate(a, j+1, number(m[1]), number(m[2]), number(m[3])), true
	}
	if m := dotDate.FindStringSubmatch(w); m != nil {
		// "в 9.30" is a time of day; "25.12" is a date.
		if m[3] == "" && (number(m[2]) < 1 || number(m[2]) > 12 || len(m[2]) != 2 || s.oneOf(i, "at_dot")) {
			return a, false
		}
		a = checkDate(a, j+1, number(m[3]), number(m[2]), number(m[1]))
		a.weak = j == i && m[3] == ""
		return a, true
	}
	a.end, a.problem = j+1, AmbiguousDate
	return a, slashDate.MatchString(w) && j > i
}

func checkDate(a atom, end, y, mo, d int) atom {
	a.end = end
	a.day = dayRef{year: y, month: time.Month(mo), day: d}
	leap := y
	if y == 0 {
		leap = 2024
	}
	t := time.Date(leap, time.Month(mo), d, 12, 0, 0, 0, time.UTC)
	if mo < 1 || mo > 12 || t.Day() != d || int(t.Month()) != mo {
		a.problem = NoSuchTime
	}
	return a
}

// resolve returns the date of the day, relative to now.
func (r dayRef) resolve(now time.Time) (y int, m time.Month, d int, reason Reason) {
	today := time.Date(now.Year(), now.Month(), now.Day(), 12, 0, 0, 0, time.UTC)
	t := today
	switch {
	case r.month > 0 && r.year > 0:
		return r.year, r.month, r.day, ""
	case r.month > 0:
		t = time.Date(now.Year(), r.month, r.day, 12, 0, 0, 0, time.UTC)
		if t.Before(today) {
			if today.Sub(t) < 60*24*time.Hour {
				return t.Year(), t.Month(), t.Day(), Past
			}
			t = time.Date(now.Year()+1, r.month, r.day, 12, 0, 0, 0, time.UTC)
		}
		if t.Day() != r.day {
			return r.year, r.month, r.day, NoSuchTime
		}
	case r.weekday > 0:
		current := (int(today.Weekday())+6)%7 + 1
		ahead := (r.weekday - current + 7) % 7
		switch {
		case r.which == "this" && r.weekday < current, r.which == "" && ahead == 0:
			reason = AmbiguousDay
		case r.which == "next":
			inNextWeek := r.weekday - current + 7
			if ahead == 0 {
				ahead = 7
			}
			if ahead != inNextWeek {
				reason = AmbiguousDay
			}
		}
		t = today.AddDate(0, 0, ahead)
	default:
		t = today.AddDate(0, 0, r.offset)
	}
	return t.Year(), t.Month(), t.Day(), reason
}
