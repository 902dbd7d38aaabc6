package schedule

import "time"

const (
	// lateAfter is the delay after which a fire counts as late even if the
	// scheduler was running.
	lateAfter = 10 * time.Second

	// The default grace is half of the interval, at least minGrace and at most
	// maxGrace.
	minGrace = time.Minute
	maxGrace = 2 * time.Hour
)

// Decision says what to do with a schedule whose time has come.
type Decision struct {
	Fire    bool
	Due     time.Time // the time that fires, or the last one skipped
	Late    bool      // the message says that it is late
	Skipped int64     // the number of skipped due times
}

// Grace returns how overdue a recurring schedule may be and still fire.
func (s Schedule) Grace() time.Duration {
	if s.GraceSeconds != nil {
		return seconds(*s.GraceSeconds)
	}
	rule, err := s.Rule()
	if err != nil {
		return minGrace
	}
	from := s.Anchor
	if s.Next != nil {
		from = *s.Next
	}
	next := rule.Next(from)
	if next.IsZero() {
		return maxGrace
	}
	return min(max(next.Sub(from)/2, minGrace), maxGrace)
}

// Decide decides whether a schedule that is due at now fires, and returns the
// schedule after that. since is when the scheduler started: any earlier due time
// is late. The last result is false if the schedule is not due.
func (s Schedule) Decide(now, since time.Time) (Decision, Schedule, bool) {
	now = now.Round(0)
	if s.State != Active || s.Next == nil || s.Next.After(now) {
		return Decision{}, s, false
	}
	d := Decision{Fire: true, Due: *s.Next}
	rule, err := s.Rule()
	if err != nil {
		// This build does not know the zone or the expression, but the stored
		// time still fires.
		s.Problem = err.Error()
	}
	if s.Kind == Recurring && err == nil {
		d.Due, d.Skipped = rule.missed(*s.Next, now)
		if overdue := now.Sub(d.Due); overdue > max(s.Grace(), lateAfter) {
			d.Fire = false
			d.Skipped++
		}
	}
	d.Late = d.Due.Before(since) || now.Sub(d.Due) >= lateAfter

	s.LastDue = instant(d.Due)
	if d.Fire {
		s.Fired++
		s.LastFired = instant(now)
		s.LastKey = s.DedupeKey(d.Due)
	}
	if d.Skipped > 0 {
		s.Skipped += d.Skipped
		s.LastSkipped = instant(now)
	}
	switch {
	case s.Kind == Once:
		s.finish(Done, now)
	case err != nil:
		s.State, s.Next = Paused, nil
	default:
		if next := rule.Next(maxTime(d.Due, now)); next.IsZero() {
			s.finish(Done, now)
		} else {
			s.Next = instant(next)
		}
	}
	return d, s, true
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
