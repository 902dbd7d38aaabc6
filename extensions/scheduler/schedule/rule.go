package schedule

import (
	"time"
)

// Rule tells when something is due.
type Rule struct {
	loc    *time.Location
	at     time.Time
	cron   *cronSpec
	every  time.Duration
	anchor time.Time
	until  time.Time // the last instant that may still be due; zero: no end
}

// Next is the first due time after t, or zero if there is none.
func (r Rule) Next(t time.Time) time.Time {
	t = t.Round(0)
	var next time.Time
	switch {
	case r.cron != nil:
		next = r.cron.next(t, r.loc)
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

// Upcoming are the next n due times after t, fewer if it ends before.
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

// missed looks at what became due from first, a due time, up to now: the
// latest of them, and how many came before it (at most maxCounted).
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

// latestBefore finds the last due time up to now, knowing an earlier one, in a
// number of steps that does not depend on how much lies between.
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
