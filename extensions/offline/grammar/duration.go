package grammar

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

type unit uint8

const (
	noUnit unit = iota
	second
	minute
	hour
	day
	week
	month
	year
)

// brief units count only after digits.
var exactUnit = map[unit]time.Duration{
	second: time.Second, minute: time.Minute, hour: time.Hour, day: 24 * time.Hour, week: 7 * 24 * time.Hour,
}

// longest is how far ahead a reminder may be.
const longest = 10 * 366 * 24 * time.Hour

// span is a length of time: calendar months and days, and an exact remainder.
type span struct {
	months, days int
	exact        time.Duration
	problem      Reason
}

func (a span) calendar() bool { return a.months > 0 || a.days > 0 }

// amount is a count of one unit.
type amount struct {
	count   float64
	unit    unit
	problem Reason
}

func (s *scan) unitAt(i int) (unit, bool) {
	u := s.value("unit", i)
	if w := s.at(i - 1); u == 0 && w != "" && isDigit(rune(w[0])) {
		u = s.value("brief_unit", i)
	}
	return unit(u), u > 0
}

// span reads a length of time at i: "5 minutes", "an hour and a half",
// "1 hour 20 minutes", "полтора часа".
func (s *scan) span(i int) (span, int, bool) {
	var out span
	approx := false
	if s.oneOf(i, "roughly") {
		approx = true
		i++
	}
	last := unit(99)
	next := i
	for {
		j := next
		if last != 99 {
			if s.is(j, comma) || s.oneOf(j, "and") {
				j++
			}
		}
		a, end, ok := s.amount(j, last == 99)
		if !ok || a.unit >= last {
			break
		}
		out = out.plus(a)
		last, next = a.unit, end
	}
	if last == 99 {
		return span{}, i, false
	}
	if approx {
		out.problem = Vague
	}
	return out, next, true
}

func (a span) plus(b amount) span {
	if b.problem != "" {
		a.problem = b.problem
		return a
	}
	whole := b.count == float64(int(b.count))
	switch {
	case b.unit >= month && !whole:
		a.problem = Vague
	case b.unit == year && b.count <= 10:
		a.months += 12 * int(b.count)
	case b.unit == month && b.count <= 120:
		a.months += int(b.count)
	case b.unit >= month, b.count*float64(exactUnit[b.unit]) > float64(longest):
		a.problem = TooFar
	case b.unit == week && whole:
		a.days += 7 * int(b.count)
	case b.unit == day && whole:
		a.days += int(b.count)
	default:
		a.exact += time.Duration(b.count * float64(exactUnit[b.unit]))
	}
	return a
}

// amount reads a count and its unit. If bare is set, a unit without a count
// ("через час") counts as one.
func (s *scan) amount(i int, bare bool) (found amount, end int, ok bool) {
	s.timesAt("amount", i, func(m timeMatch) {
		a := amount{unit: unit(cmp.Or(m.value("unit"), m.value("half_minute"), int(hour)))}
		var err error
		if a.count, err = strconv.ParseFloat(m.flag, 64); err != nil {
			a.problem = Vague
		}
		lo, hi, isRange := strings.Cut(m.slots["range"], "-")
		if m.end > end && (!isRange || number(lo) && number(hi)) {
			found, end, ok = a, m.end, true
		}
	})
	if ok {
		return found, end, true
	}
	n, j, ok := s.decimal(i)
	switch {
	case ok:
	case bare && s.unitHere(i):
		n, j = 1, i
	default:
		return amount{}, i, false
	}
	if s.oneOf(j, "more") {
		j++
	}
	if k, ok := s.words(j, "and_a_half"); ok && s.unitHere(k) {
		n, j = n+0.5, k
	}
	u, ok := s.unitAt(j)
	if !ok {
		return amount{}, i, false
	}
	j++
	if k, ok := s.words(j, "and_a_half"); ok && !s.unitHere(k) {
		n, j = n+0.5, k
	} else if k, ok := s.words(j, "and_a_quarter"); ok && !s.unitHere(k) {
		n, j = n+0.25, k
	}
	return amount{count: n, unit: u}, j, true
}

func (s *scan) unitHere(i int) bool {
	_, ok := s.unitAt(i)
	return ok
}

func number(w string) bool {
	_, err := strconv.Atoi(w)
	return err == nil || languages().values["number"][w] > 0
}
