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

var weekdays = map[string]int{
	"monday": 1, "tuesday": 2, "wednesday": 3, "thursday": 4, "friday": 5, "saturday": 6, "sunday": 7,
	"понедельник": 1, "вторник": 2, "среду": 3, "среда": 3, "четверг": 4, "пятницу": 5, "пятница": 5, "субботу": 6,
	"суббота": 6, "воскресенье": 7,
}

var briefWeekdays = map[string]int{
	"mon": 1, "tue": 2, "tues": 2, "wed": 3, "thu": 4, "thur": 4, "thurs": 4, "fri": 5, "sat": 6, "sun": 7,
	"пн": 1, "вт": 2, "ср": 3, "чт": 4, "пт": 5, "сб": 6, "вс": 7,
}

var months = map[string]time.Month{
	"january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8, "september": 9,
	"october": 10, "november": 11, "december": 12,
	"jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9, "oct": 10, "nov": 11,
	"dec":    12,
	"января": 1, "февраля": 2, "марта": 3, "апреля": 4, "мая": 5, "июня": 6, "июля": 7, "августа": 8, "сентября": 9,
	"октября": 10, "ноября": 11, "декабря": 12,
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
	for offset, phrases := range [][]string{
		{"today", "сегодня"},
		{"tomorrow", "завтра"},
		{"the day after tomorrow", "day after tomorrow", "послезавтра"},
	} {
		if end, ok := s.words(i, phrases...); ok {
			return day(end, dayRef{offset: offset})
		}
	}
	if s.oneOf(i, "tonight") {
		return day(i+1, dayRef{part: evening})
	}
	if s.oneOf(i, "this") && s.oneOf(i+1, "morning", "afternoon", "evening") {
		return day(i+2, dayRef{part: partNouns[s.at(i+1)]})
	}
	j := i
	if s.oneOf(j, "on", "в", "во") {
		j++
	}
	ref := dayRef{}
	switch {
	case s.oneOf(j, "this", "эту", "этот", "это", "ближайшую", "ближайший", "ближайшее"):
		ref.which = "this"
		j++
	case s.oneOf(j, "next", "следующую", "следующий", "следующее"):
		ref.which = "next"
		j++
	}
	if wd := weekdays[s.at(j)]; wd > 0 && (j > i || s.lang == English || s.dayFollowsClockless(j)) {
		ref.weekday = wd
		a.weak = j == i
		return day(j+1, ref)
	}
	if wd := briefWeekdays[s.at(j)]; wd > 0 && j > i {
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
		if p, ok := partNouns[s.at(a.end)]; ok && s.lang == English {
			a.day.part = p
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
	if m := dotDate.FindStringSubmatch(w); m != nil && !s.oneOf(i, "at") {
		d, _ := strconv.Atoi(m[1])
		mo, _ := strconv.Atoi(m[2])
		y, _ := strconv.Atoi(m[3])
		// "в 9.30" is a time of day; "25.12" is a date.
		if m[3] != "" || (mo >= 1 && mo <= 12 && len(m[2]) == 2 && !s.oneOf(i, "в", "во") && (j > i || d > 0)) {
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
	if mo, ok := months[w]; ok && (j > i || s.lang == English) {
		if d, k, ok := s.dayNumber(j + 1); ok {
			return s.dateYear(a, k, int(mo), d), true
		}
	}
	if d, k, ok := s.dayNumber(j); ok {
		if s.oneOf(k, "of") {
			k++
		}
		if mo, ok := months[s.at(k)]; ok {
			return s.dateYear(a, k+1, int(mo), d), true
		}
		if s.oneOf(i, "on") && k == j+2 { // "on the 25th"
			a.end, a.problem = k, NoMonth
			return a, true
		}
		if s.oneOf(k, "числа") {
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
	if i < len(s.toks) && s.toks[i].glued && s.oneOf(i, "st", "nd", "rd", "th", "го", "ого", "е", "ое") {
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
		if s.oneOf(j, "года", "г") {
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
