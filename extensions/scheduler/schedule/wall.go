package schedule

import "time"

// A wall-clock time is represented by the UTC time with the same fields. Cron
// expressions are evaluated with such times, which have no missing or repeated
// hours, and the result is converted to an instant.

// wallOf returns the wall-clock time of an instant.
func wallOf(t time.Time, loc *time.Location) time.Time {
	_, offset := t.In(loc).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// placement says how often a wall-clock time exists in a zone.
type placement int

const (
	unique placement = iota
	skipped
	repeated
)

// maxOffset is more than the offset of any zone from UTC.
const maxOffset = 30 * time.Hour

// place returns the first instant with a wall-clock time. For a skipped time it
// returns the first instant after the gap.
func place(wall time.Time, loc *time.Location) (time.Time, placement) {
	wall = wall.UTC()
	at := wall.Add(-maxOffset)
	var found time.Time
	for {
		shift, end := offsetPeriod(at, loc)
		candidate := wall.Add(-shift)
		inside := end.IsZero() || candidate.Before(end)
		switch {
		case !found.IsZero():
			if inside && !candidate.Before(at) {
				return found, repeated
			}
			return found, unique
		case inside && candidate.Before(at):
			return at.UTC(), skipped
		case inside:
			found = candidate
		}
		if end.IsZero() || end.After(wall.Add(maxOffset)) {
			return found, unique
		}
		at = end
	}
}

// offsetPeriod returns the zone's offset at an instant, and a later instant up
// to which it stays the same; zero means forever. The next period may have the
// same offset.
func offsetPeriod(at time.Time, loc *time.Location) (shift time.Duration, end time.Time) {
	local := at.In(loc)
	_, offset := local.Zone()
	_, end = local.ZoneBounds()
	if !end.IsZero() && !end.After(at) {
		// On the last day of a leap year after the zone's table, ZoneBounds
		// returns the end of the day before.
		end = at.Truncate(time.Hour).Add(time.Hour)
	}
	return time.Duration(offset) * time.Second, end
}
