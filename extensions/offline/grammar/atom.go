package grammar

import "time"

type atomKind uint8

const (
	delayAtom atomKind = iota
	dayAtom
	clockAtom
	partAtom
	repeatAtom
)

// atom is one part of a time: a delay, a day, a time of day, a part of the day,
// or a repetition. A sentence may have several ("tomorrow ... at 9").
type atom struct {
	kind       atomKind
	start, end int
	problem    Reason // why it was recognized but can't be used
	weak       bool   // counts only at the edge of a sentence, not inside a text

	delay  span
	day    dayRef
	clock  clock
	part   part
	repeat repeat
}

// atom reads the longest atom at i.
func (s *scan) atom(i int) (atom, bool) {
	var best atom
	found := false
	for _, read := range []func(int) (atom, bool){s.repeatAtom, s.delayAtom, s.dayAtom, s.clockAtom, s.partAtom} {
		if a, ok := read(i); ok && (!found || a.end > best.end) {
			a.start = i
			best, found = a, true
		}
	}
	return best, found
}

func (s *scan) delayAtom(i int) (atom, bool) {
	if s.oneOf(i, "in") {
		if sp, next, ok := s.span(i + 1); ok {
			return atom{kind: delayAtom, end: next, delay: sp, problem: sp.problem}, true
		}
		return atom{}, false
	}
	if sp, next, ok := s.span(i); ok {
		if end, ok := s.words(next, "from_now"); ok {
			return atom{kind: delayAtom, end: end, delay: sp, problem: sp.problem}, true
		}
	}
	return atom{}, false
}

// part is a part of the day.
type part uint8

const (
	noPart part = iota
	morning
	afternoon
	evening
	night
)

func (s *scan) partAtom(i int) (found atom, ok bool) {
	s.timesAt("part", i, func(m timeMatch) {
		found, ok = atom{kind: partAtom, end: m.end, part: part(m.value("in_part"))}, true
	})
	return found, ok
}

// hoursOf are the first and the last hour of the parts; the night ends on the next day.
var hoursOf = map[part][2]int{morning: {1, 11}, afternoon: {12, 18}, evening: {16, 23}, night: {21, 29}}

// place converts an hour of the twelve-hour clock to the part of the day. It
// reports whether the hour is in that part.
func (p part) place(h int) (int, bool) {
	for c := h; c == h || h <= 12 && c < 36; c += 12 {
		if r, ok := hoursOf[p]; !ok || c >= r[0] && c <= r[1] {
			return c % 24, true
		}
	}
	return h, false
}

// wall returns a time of day on a date. The reason is set if a clock change
// skips or repeats that time.
func wall(y int, m time.Month, d, h, minute int, loc *time.Location) (time.Time, Reason) {
	t := time.Date(y, m, d, h, minute, 0, 0, loc)
	if t.Year() != y || t.Month() != m || t.Day() != d || t.Hour() != h || t.Minute() != minute {
		return t, NoSuchTime
	}
	for _, shift := range []time.Duration{-time.Hour, -30 * time.Minute, 30 * time.Minute, time.Hour} {
		if o := t.Add(shift); o.Hour() == h && o.Minute() == minute {
			return t, Twice
		}
	}
	return t, ""
}
