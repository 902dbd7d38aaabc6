package schedule

import (
	"time"
)

// Rule is the timing of a schedule.
type Rule struct {
	loc    *time.Location
	at     time.Time
	cron   *cronSpec
	days   int       // with cron: only every n-th day
	first  time.Time // the day from which they count, as a wall-clock time
	every  time.Duration
	anchor time.Time
	until  time.Time // the last possible due time; zero means no end
}

// Next returns the first due time after t, or zero if there is none.
func (r Rule) Next(t time.Time) time.Time {
	t = t.Round(0)
	var next time.Time
	switch {
	case r.cron != nil:
		next = r.nextDay(r.cron.next(t, r.loc))
	case r.every > 0:
		next = r.anchor.Add(r.every)
		if !next.After(t) {
			next = r.anchor.Add(t.Sub(r.anchor)/r.every*r.every + r.every)
		}
	case r.at.After(t):
		next = r.at
	}
	if next.IsZero() || (!r.until.IsZero() && next.After(r.until)) {
		return time.Time{}
	}
	return next.UTC()
}

// nextDay returns the first due time from next on, a due time of cron, that is on one
// of the days that count.
func (r Rule) nextDay(next time.Time) time.Time {
	for range maxCounted {
		if r.days < 2 || next.IsZero() {
			return next
		}
		day := wallOf(next, r.loc).Truncate(24 * time.Hour)
		ahead := int(day.Sub(r.first)/(24*time.Hour)) % r.days
		if ahead == 0 {
			return next
		}
		if ahead < 0 {
			ahead += r.days
		}
		before, _ := place(day.AddDate(0, 0, r.days-ahead).Add(-time.Second), r.loc)
		next = r.cron.next(before, r.loc)
	}
	return time.Time{}
}

// Upcoming returns the next n due times after t, or fewer if the rule ends.
func (r Rule) Upcoming(t time.Time, n int) []time.Time {
	var times []time.Time
	for range n {
		if t = r.Next(t); t.IsZero() {
			break
		}
		times = append(times, t)
	}
	return times
}

// maxCounted bounds how many missed times are counted one by one.
const maxCounted = 1000

// missed returns the latest due time up to now, and the number of due times
// before it, from first on (at most maxCounted). first is a due time.
func (r Rule) missed(first, now time.Time) (latest time.Time, earlier int64) {
	if r.every > 0 {
		end := now
		if !r.until.IsZero() && r.until.Before(end) {
			end = r.until
		}
		n := max(0, end.Sub(first)/r.every)
		return first.Add(n * r.every), int64(n)
	}
	latest = first
	for next := r.Next(latest); !next.IsZero() && !next.After(now); next = r.Next(latest) {
		if earlier == maxCounted {
			return r.latestBefore(latest, now), earlier
		}
		latest = next
		earlier++
	}
	return latest, earlier
}

// latestBefore returns the last due time up to now, given an earlier one. The
// number of steps does not depend on the number of due times between.
func (r Rule) latestBefore(known, now time.Time) time.Time {
	if !r.until.IsZero() && now.After(r.until) {
		now = r.until
	}
	for back := time.Minute; ; back *= 2 {
		from := now.Add(-back)
		if !from.After(known) {
			from = known
		}
		latest := r.Next(from)
		if latest.IsZero() || latest.After(now) {
			if from.Equal(known) {
				return known
			}
			continue
		}
		for next := r.Next(latest); !next.IsZero() && !next.After(now); next = r.Next(latest) {
			latest = next
		}
		return latest
	}
}
