package schedule

import "time"

// Wall-clock readings are handled as times in UTC with the fields of the local
// reading. Cron expressions are evaluated over them, where no hour is missing
// or doubled, and the result is mapped to an instant.

// wallOf is the local reading of an instant.
func wallOf(t time.Time, loc *time.Location) time.Time {
	_, offset := t.In(loc).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// placement says how a wall-clock reading relates to the zone.
type placement int

const (
	unique placement = iota
	skipped
	repeated
)

// farthest is more than any zone has ever been away from UTC.
const farthest = 30 * time.Hour

// place maps a wall-clock reading to the instant at which it happens first. A
// reading that is skipped maps to the first instant after the gap.
func place(wall time.Time, loc *time.Location) (time.Time, placement) {
	wall = wall.UTC()
	at := wall.Add(-farthest)
	var found time.Time
	for {
		shift, end := stretch(at, loc)
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
		if end.IsZero() || end.After(wall.Add(farthest)) {
			return found, unique
		}
		at = end
	}
}

// stretch is the offset at an instant, and a later instant up to which it
// stays the same; zero: for good. The next stretch may have the same offset.
func stretch(at time.Time, loc *time.Location) (shift time.Duration, end time.Time) {
	local := at.In(loc)
	_, offset := local.Zone()
	_, end = local.ZoneBounds()
	if !end.IsZero() && !end.After(at) {
		// On the last day of a leap year beyond the zone's table, ZoneBounds
		// says that the stretch ended with the day before.
		end = at.Truncate(time.Hour).Add(time.Hour)
	}
	return time.Duration(offset) * time.Second, end
}
