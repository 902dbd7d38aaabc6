package grammar

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// moment is all atoms of a sentence, by kind.
type moment struct {
	atoms  []atom
	delay  *atom
	day    *atom
	clock  *atom
	part   *atom
	repeat *atom
}

// resolve combines all atoms to one When, or asks what is unclear.
func (s *scan) resolve(atoms []atom) (When, *Question) {
	if len(atoms) == 0 {
		return nil, &Question{Reason: NoTime}
	}
	ask := func(reason Reason, a *atom) (When, *Question) {
		q := &Question{Reason: reason}
		if a != nil {
			q.Said = s.raw(a.start, a.end)
		}
		return nil, q
	}
	m := moment{atoms: atoms}
	for i := range atoms {
		a := &atoms[i]
		slot := map[atomKind]**atom{delayAtom: &m.delay, dayAtom: &m.day, clockAtom: &m.clock, partAtom: &m.part,
			repeatAtom: &m.repeat}[a.kind]
		if *slot != nil {
			return nil, &Question{Reason: TwoTimes, Said: s.raw((*slot).start, (*slot).end),
				Other: s.raw(a.start, a.end)}
		}
		*slot = a
	}
	if s.old != nil && m.delay == nil {
		if q := s.rebase(&m); q != nil {
			return nil, q
		}
	}
	for i := range atoms {
		if atoms[i].problem != "" {
			return ask(atoms[i].problem, &atoms[i])
		}
	}
	if m.delay != nil {
		return s.resolveDelay(m, ask)
	}
	if m.repeat != nil {
		return s.resolveRepeat(m, ask)
	}
	if s.wakes && m.clock != nil && m.part == nil && !m.clock.clock.fixed && m.clock.clock.part == noPart &&
		m.clock.clock.hour >= 3 && (m.day == nil || m.day.day.part == noPart) {
		m.part = &atom{kind: partAtom, start: m.clock.start, end: m.clock.end, part: morning}
	}
	if m.clock == nil {
		usual := s.usual(m)
		if usual == nil {
			return ask(NoClock, &atoms[0])
		}
		m.clock = usual
		when, q := s.resolveAt(m, ask)
		if q != nil && q.Reason == Past {
			return ask(NoClock, &atoms[0])
		}
		return when, q
	}
	return s.resolveAt(m, ask)
}

type asker func(Reason, *atom) (When, *Question)

func conflict(s *scan, a, b *atom) (When, *Question) {
	return nil, &Question{Reason: TwoTimes, Said: s.raw(a.start, a.end), Other: s.raw(b.start, b.end)}
}

func (s *scan) resolveDelay(m moment, ask asker) (When, *Question) {
	if o := cmp.Or(m.repeat, m.day); o != nil {
		return conflict(s, m.delay, o)
	}
	sp := m.delay.delay
	if sp.months > 120 || sp.days > 3660 {
		return ask(TooFar, m.delay)
	}
	if m.clock == nil && m.part == nil {
		if !sp.calendar() {
			if sp.exact < time.Second {
				return ask(Past, m.delay)
			}
			return After{Delay: sp.exact}, nil
		}
		day := s.now.AddDate(0, sp.months, sp.days)
		if sp.months > 0 && sp.days == 0 && day.Day() != s.now.Day() || day.Hour() != s.now.Hour() {
			return ask(NoSuchTime, m.delay)
		}
		return At{Time: day.Add(sp.exact)}, nil
	}
	if !sp.calendar() || sp.exact != 0 {
		return conflict(s, m.delay, cmp.Or(m.clock, m.part))
	}
	if m.clock == nil {
		return ask(NoClock, m.part)
	}
	day := time.Date(s.now.Year(), s.now.Month(), s.now.Day(), 12, 0, 0, 0, time.UTC).AddDate(0, sp.months, sp.days)
	if sp.months > 0 && sp.days == 0 && day.Day() != s.now.Day() {
		return ask(NoSuchTime, m.delay)
	}
	c, reason := s.hour(m, noPart, true)
	if reason != "" {
		return s.askClock(reason, m, c)
	}
	return s.atWall(day.Year(), day.Month(), day.Day(), c, m)
}

func (s *scan) resolveRepeat(m moment, ask asker) (When, *Question) {
	r := m.repeat.repeat
	if d := m.day; d != nil {
		if r.every == 0 || r.every%7 != 0 || r.days != everyDay || d.day.weekday == 0 || d.day.which != "" {
			return conflict(s, m.repeat, d)
		}
		r.days = strconv.Itoa(d.day.weekday % 7) // every two weeks on Monday
	}
	if r.interval > 0 {
		if o := cmp.Or(m.clock, m.part); o != nil {
			return conflict(s, m.repeat, o)
		}
		return Every{Interval: r.interval}, nil
	}
	if m.clock == nil {
		return ask(NoClock, m.repeat)
	}
	c, reason := s.hour(m, r.part, true)
	if c.midnight {
		reason = "" // "every midnight" is unambiguous
	}
	if reason != "" {
		return s.askClock(reason, m, c)
	}
	return r.cron(c.hour, c.minute), nil
}

// hour resolves the hour of the day; onDay is set if the day is known.
func (s *scan) hour(m moment, p part, onDay bool) (clock, Reason) {
	if m.part != nil {
		if p != noPart && p != m.part.part {
			return m.clock.clock, NoSuchTime
		}
		p = m.part.part
	}
	c, reason := m.clock.clock.in(p)
	switch {
	case reason != "":
		return c, reason
	case c.fixed && c.midnight && onDay:
		return c, Midnight
	case c.fixed || c.part != noPart:
		return c, ""
	case onDay && c.hour >= 1 && c.hour <= 6:
		return c, AmPm
	}
	return c, ""
}

func (s *scan) resolveAt(m moment, ask asker) (When, *Question) {
	if m.day == nil {
		return s.resolveClock(m)
	}
	c, reason := s.hour(m, m.day.day.part, true)
	y, mo, d, dayReason := m.day.day.resolve(s.now)
	if dayReason != "" {
		return ask(dayReason, m.day)
	}
	if reason != "" {
		return s.askClock(reason, m, c)
	}
	when, q := s.atWall(y, mo, d, c, m)
	if q != nil && q.Reason == Past && !c.fixed && c.hour < 12 {
		if later, o := s.atWall(y, mo, d, clock{hour: c.hour + 12, minute: c.minute, fixed: true}, m); o == nil &&
			later != nil {
			return s.askClock(AmPm, m, c)
		}
	}
	return when, q
}

// resolveClock resolves a time of day without a day: today, if it is still ahead.
func (s *scan) resolveClock(m moment) (When, *Question) {
	c, reason := s.hour(m, noPart, false)
	if reason != "" {
		return s.askClock(reason, m, c)
	}
	y, mo, d := s.now.Date()
	// Tonight has tomorrow's date, unless the night has begun.
	tonight := c.midnight || (c.fixed && c.part == night || m.part != nil && m.part.part == night) && c.hour < 6
	if !tonight && !c.fixed && c.hour >= 1 && c.hour < 12 {
		early, q := s.atWall(y, mo, d, c, m)
		if c.hour <= 6 || q != nil || s.later {
			late, o := s.atWall(y, mo, d, clock{hour: c.hour + 12, minute: c.minute, fixed: true}, m)
			if o == nil && late != nil {
				return s.askClock(AmPm, m, c)
			}
		}
		return early, q
	}
	when, q := s.atWall(y, mo, d, c, m)
	if q != nil && (tonight || q.Reason == Past && (s.later || m.part != nil)) {
		next := time.Date(y, mo, d, 12, 0, 0, 0, time.UTC).AddDate(0, 0, 1)
		return s.atWall(next.Year(), next.Month(), next.Day(), c, m)
	}
	return when, q
}

func (s *scan) askClock(reason Reason, m moment, c clock) (When, *Question) {
	return nil, &Question{Reason: reason, Said: s.raw(m.clock.start, m.clock.end), Hour: c.hour, Minute: c.minute}
}

// atWall returns a time of day on a date. It asks back if that time doesn't
// exist, exists twice, has passed, or is too far ahead.
func (s *scan) atWall(y int, mo time.Month, d int, c clock, m moment) (When, *Question) {
	t, reason := wall(y, mo, d, c.hour, c.minute, s.now.Location())
	ask := func(r Reason) (When, *Question) {
		return nil, &Question{Reason: r, Said: s.raw(m.clock.start, m.clock.end), Time: t}
	}
	switch {
	case reason == NoSuchTime:
		return ask(NoSuchTime)
	case !t.After(s.now):
		return ask(Past)
	case t.Sub(s.now) > longest:
		return ask(TooFar)
	case reason != "":
		return ask(reason)
	}
	return At{Time: t}, nil
}

// usualHours are the hours of the parts of a day that are named without a time.
var usualHours = map[part]int{morning: 9, afternoon: 15, evening: 19, night: 22}

// usual returns the usual time of a part of the day, nil if none is named.
func (s *scan) usual(m moment) *atom {
	var p part
	var a *atom
	if m.day != nil {
		p, a = m.day.day.part, m.day
	}
	if m.part != nil {
		p, a = m.part.part, m.part
	}
	if p == noPart {
		return nil
	}
	return &atom{kind: clockAtom, start: a.start, end: a.end, clock: clock{hour: usualHours[p], fixed: true}}
}

// Timing is the timing of a reminder: its next time, and its cron expression and days
// if it repeats on days.
type Timing struct {
	Next time.Time
	Cron
}

// rebase adds to a moment what it leaves out, from the timing of the reminder that is
// moved. An hour that may be morning or evening is in the same half of the day.
func (s *scan) rebase(m *moment) *Question {
	next := s.old.Next.In(s.now.Location())
	at := m.atoms[0]
	noParts := m.part == nil && (m.day == nil || m.day.day.part == noPart)
	if m.clock == nil && (noParts || m.repeat != nil) {
		m.clock = &atom{kind: clockAtom, start: at.start, end: at.end,
			clock: clock{hour: next.Hour(), minute: next.Minute(), fixed: true}}
	}
	if m.clock != nil && noParts {
		if c := &m.clock.clock; !c.fixed && c.part == noPart && c.hour < 12 && next.Hour() >= 12 {
			c.hour += 12
			c.fixed = true
		}
		m.clock.clock.fixed = m.clock.clock.part == noPart
	}
	switch fields := strings.Fields(s.old.Expr); {
	case m.repeat != nil:
	case len(fields) == 5 && m.day != nil:
		return &Question{Reason: Repeats, Said: s.raw(m.day.start, m.day.end)}
	case len(fields) == 5:
		day, _ := strconv.Atoi(fields[2])
		m.repeat = &atom{kind: repeatAtom, start: at.start, end: at.end,
			repeat: repeat{days: fields[4], monthDay: day, every: s.old.Days}}
	case m.day == nil:
		m.day = &atom{kind: dayAtom, start: at.start, end: at.end,
			day: dayRef{year: next.Year(), month: next.Month(), day: next.Day()}}
	}
	return nil
}

// Span is a length of time: calendar months and days, and an exact remainder.
type Span struct {
	Months, Days int
	Exact        time.Duration
}

func (a Span) zero() bool { return a == Span{} }

// After returns the time a span after t; before it, if sign is -1.
func (a Span) After(t time.Time, sign int) time.Time {
	return t.AddDate(0, sign*a.Months, sign*a.Days).Add(time.Duration(sign) * a.Exact)
}
