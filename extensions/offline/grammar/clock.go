package grammar

import (
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

// clock is a time of day as the person wrote it.
type clock struct {
	hour, minute int
	part         part
	// fixed is set if the hour is on the 24-hour clock (am, pm, 18:30, 09:00, noon).
	fixed bool
	// midnight is ambiguous together with a day: it may begin or end the day.
	midnight bool
}

var digital = pattern.New(`^(\d{1,2})[:.](\d{2})$`)

// genitiveHour are ordinals in the genitive: "половина десятого".
func (s *scan) clockAtom(i int) (atom, bool) {
	j := i
	prefixed := s.oneOf(i, "at")
	if prefixed {
		j++
	} else if s.is(i, other) && s.toks[i].norm == "@" {
		prefixed = true
		j++
	}
	if prefixed && s.oneOf(j, "roughly") {
		if _, end, reason, ok := s.clock(j+1, true); ok {
			if reason == "" {
				reason = Vague
			}
			return atom{kind: clockAtom, end: end, problem: reason}, true
		}
	}
	c, end, reason, ok := s.clock(j, prefixed)
	if !ok {
		return atom{}, false
	}
	return atom{kind: clockAtom, end: end, clock: c, problem: reason}, true
}

// clock reads a time of day at i. Without a preposition it accepts only
// unmistakable forms: 18:30, 9 am, noon.
func (s *scan) clock(i int, prefixed bool) (clock, int, Reason, bool) {
	if end, ok := s.words(i, "noon"); ok {
		return clock{hour: 12, fixed: true}, end, "", true
	}
	if end, ok := s.words(i, "midnight"); ok {
		return clock{fixed: true, midnight: true}, end, "", true
	}
	if c, end, ok := s.spokenClock(i); ok {
		return s.placeClock(c, end)
	}
	w := s.at(i)
	if m := digital.FindStringSubmatch(w); m != nil && (prefixed || strings.Contains(w, ":") ||
		s.begins(i+1, "am_pm")) {
		h, _ := strconv.Atoi(m[1])
		mi, _ := strconv.Atoi(m[2])
		c := clock{hour: h, minute: mi, fixed: h > 12 || w[0] == '0' || s.lang == Russian}
		return s.placeClock(c, i+1)
	}
	if prefixed && s.oneOf(i, "one_oclock") { // "в час дня"
		return s.placeClock(clock{hour: 1}, i+1)
	}
	h, j, ok := s.integer(i)
	if !ok {
		return clock{}, i, "", false
	}
	c := clock{hour: h, fixed: h > 12 || h == 0 || (len(w) == 2 && w[0] == '0')}
	if s.begins(j, "am_pm") || (j < len(s.toks) && s.value("part_of_clock", j) > 0 && isDigit(rune(w[0]))) {
		prefixed = true
	}
	if !prefixed {
		return clock{}, i, "", false
	}
	if s.oneOf(j, "o_clock") {
		j++
		if mi, k, ok := s.integer(j); ok && s.oneOf(k, "minutes_of") {
			c.minute, j = mi, k+1
		}
	} else if mi, k, ok := s.integer(j); ok && mi >= 10 && mi < 60 && !s.unitHere(k) { // "в 9 30"
		c.minute, j = mi, k
	}
	if _, unit := s.unitAt(j); unit && s.value("part_of_clock", j) == 0 {
		return clock{}, i, "", false
	}
	return s.placeClock(c, j)
}

// spokenClock reads "half past nine", "quarter to 10", "10 past 9", "половине
// десятого", "без четверти десять".
func (s *scan) spokenClock(i int) (found clock, end int, ok bool) {
	s.timesAt("clock", i, func(m timeMatch) {
		minutes, _ := strconv.Atoi(m.flag)
		switch m.flag {
		case "past":
			minutes = m.number("n")
		case "to":
			minutes = -m.number("n")
		}
		h := max(m.number("h"), m.value("genitive_hour"), m.value("half_hour"))
		if s.oneOf(m.end-1, "one_oclock") {
			h = 1
		}
		if h < 1 || h > 12 || minutes%5 != 0 || minutes == 0 || minutes > 30 || minutes <= -60 || m.end <= end {
			return
		}
		if minutes < 0 {
			h, minutes = (h+10)%12+1, 60+minutes
		}
		found, end, ok = clock{hour: h, minute: minutes}, m.end, true
	})
	return found, end, ok
}

// placeClock reads the words after an hour (am, pm, o'clock, утра) and checks it.
func (s *scan) placeClock(c clock, j int) (clock, int, Reason, bool) {
	if s.oneOf(j, "oclock") {
		j++
	}
	switch {
	case s.begins(j, "am_pm"):
		if c.hour < 1 || c.hour > 12 {
			return c, j + 1, NoSuchTime, true
		}
		c.hour, c.fixed = c.hour%12, true
		if s.begins(j, "pm") {
			c.hour += 12
		}
		c.midnight = c.hour == 0 && c.minute == 0
		j, _ = s.words(j, "am_pm")
	case s.value("part_of_clock", j) > 0:
		c.part = part(s.value("part_of_clock", j))
		j++
	}
	if c.hour > 23 || c.minute > 59 {
		return c, j, NoSuchTime, true
	}
	return c, j, "", true
}

// in resolves the hour within a part of the day; noPart leaves it unchanged.
func (c clock) in(p part) (clock, Reason) {
	if p == noPart {
		p = c.part
	} else if c.part != noPart && c.part != p {
		return c, NoSuchTime
	}
	if p == noPart {
		return c, ""
	}
	h, ok := p.place(c.hour)
	switch {
	case !ok || c.fixed && h != c.hour && c.hour != 12:
		return c, NoSuchTime
	case c.fixed:
		return c, ""
	}
	c.hour, c.fixed = h, true
	c.midnight = h == 0 && c.minute == 0
	return c, ""
}
