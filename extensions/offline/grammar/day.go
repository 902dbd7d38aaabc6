package grammar

import (
	"strconv"
	"strings"
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

func (s *scan) dayAtom(i int) (atom, bool) {
	a := atom{kind: dayAtom}
	day := func(end int, ref dayRef) (atom, bool) {
		a.end, a.day = end, ref
		return s.dayPart(a), true
	}
	for offset, list := range []string{"today", "tomorrow", "day_after_tomorrow"} {
		if end, ok := s.words(i, list); ok {
			return day(end, dayRef{offset: offset})
		}
	}
	if s.oneOf(i, "tonight") {
		return day(i+1, dayRef{part: evening})
	}
	if s.oneOf(i, "this") && s.oneOf(i+1, "part_of_today") {
		return day(i+2, dayRef{part: part(s.value("part", i+1))})
	}
	j := i
	if s.oneOf(j, "on") {
		j++
	}
	ref := dayRef{}
	switch {
	case s.oneOf(j, "this_day"):
		ref.which = "this"
		j++
	case s.oneOf(j, "next"):
		ref.which = "next"
		j++
	}
	if wd := s.value("weekday", j); wd > 0 && (j > i || s.lang == English || s.dayFollowsClockless(j)) {
		ref.weekday = wd
		a.weak = j == i
		return day(j+1, ref)
	}
	if wd := s.value("brief_weekday", j); wd > 0 && j > i {
		ref.weekday = wd
		return day(j+1, ref)
	}
	if ref.which != "" {
		return atom{}, false
	}
	if s.oneOf(j, "the") {
		j++
	}
	return s.date(i, j)
}

// dayFollowsClockless accepts a bare Russian weekday only before a time: "пятница, 10:00".
func (s *scan) dayFollowsClockless(j int) bool {
	k := j + 1
	if s.is(k, comma) {
		k++
	}
	return digital.MatchString(s.at(k))
}

// dayPart reads a part of the day after a day: "tomorrow evening".
func (s *scan) dayPart(a atom) atom {
	if a.day.part == noPart {
		if p := s.value("part", a.end); p > 0 && s.lang == English {
			a.day.part = part(p)
			a.end++
		}
	}
	return a
}

// date reads a calendar date at j; i is the index of its preposition.
func (s *scan) date(i, j int) (atom, bool) {
	a := atom{kind: dayAtom}
	w := s.at(j)
	if m := isoDate.FindStringSubmatch(w); m != nil {
		y, _ := strconv.Atoi(m[1])
		mo, _ := strconv.Atoi(m[2])
		d, _ := strconv.Atoi(m[3])
		return checkDate(a, j+1, y, mo, d), true
	}
	if m := dotDate.FindStringSubmatch(w); m != nil && !s.oneOf(i, "at_only") {
		d, _ := strconv.Atoi(m[1])
		mo, _ := strconv.Atoi(m[2])
		y, _ := strconv.Atoi(m[3])
		// "в 9.30" is a time of day; "25.12" is a date.
		if m[3] != "" || (mo >= 1 && mo <= 12 && len(m[2]) == 2 && !s.oneOf(i, "at_dot") && (j > i || d > 0)) {
			a = checkDate(a, j+1, y, mo, d)
			a.weak = j == i && m[3] == ""
			return a, true
		}
		return atom{}, false
	}
	if slashDate.MatchString(w) && j > i {
		a.end, a.problem = j+1, AmbiguousDate
		return a, true
	}
	if mo := s.value("month", j); mo > 0 && (j > i || s.lang == English) {
		if d, k, ok := s.dayNumber(j + 1); ok {
			return s.dateYear(a, k, mo, d), true
		}
	}
	if d, k, ok := s.dayNumber(j); ok {
		if s.oneOf(k, "of") {
			k++
		}
		if mo := s.value("month", k); mo > 0 {
			return s.dateYear(a, k+1, mo, d), true
		}
		if s.oneOf(i, "on_date") && k == j+2 { // "on the 25th"
			a.end, a.problem = k, NoMonth
			return a, true
		}
		if s.oneOf(k, "of_this_month") {
			a.end, a.problem = k+1, NoMonth
			return a, true
		}
	}
	return atom{}, false
}

// dayNumber reads the day of a month: 25, 25th, 25-го.
func (s *scan) dayNumber(i int) (int, int, bool) {
	w := s.at(i)
	if w == "" || !isDigit(rune(w[0])) {
		return 0, i, false
	}
	w = strings.TrimSuffix(w, "-")
	if len(w) > 2 {
		return 0, i, false
	}
	d, err := strconv.Atoi(w)
	if err != nil || d < 1 || d > 31 {
		return 0, i, false
	}
	i++
	if i < len(s.toks) && s.toks[i].glued && s.oneOf(i, "ordinal_ending") {
		i++
	}
	return d, i, true
}

func (s *scan) dateYear(a atom, k, mo, d int) atom {
	j := k
	if s.is(j, comma) {
		j++
	}
	if w := s.at(j); len(w) == 4 && number(w) && w[0] == '2' {
		y, _ := strconv.Atoi(w)
		j++
		if s.oneOf(j, "of_year") {
			j++
		}
		return checkDate(a, j, y, mo, d)
	}
	return checkDate(a, k, 0, mo, d)
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
