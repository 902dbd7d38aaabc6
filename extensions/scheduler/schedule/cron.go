package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// everyHour are the bits of an hour field that leaves no hour out.
const everyHour = 1<<24 - 1

const cronHelp = `cron has five fields, minute hour day-of-month month day-of-week, such as "30 8 * * 1-5" (08:30 on weekdays), or is one of @hourly @daily @weekly @monthly @yearly`

type cronSpec struct {
	spec *cron.SpecSchedule
	// elapsed: the expression names every hour, so it follows elapsed time
	// through a change of the clocks.
	elapsed bool
}

var cronParser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

func parseCron(expr string) (*cronSpec, error) {
	fields := strings.Fields(expr)
	switch {
	case len(fields) == 0:
		return nil, fmt.Errorf("cron is empty: %s", cronHelp)
	case strings.HasPrefix(fields[0], "TZ="), strings.HasPrefix(fields[0], "CRON_TZ="):
		return nil, fmt.Errorf("cron %q names a zone: put it into timezone instead", expr)
	case fields[0] == "@every":
		return nil, fmt.Errorf("cron %q is an interval: use every_seconds instead", expr)
	case fields[0][0] != '@' && len(fields) == 6:
		return nil, fmt.Errorf("cron %q has six fields: seconds are not supported; %s", expr, cronHelp)
	case fields[0][0] != '@' && len(fields) == 5:
		fields[4] = sundayIsZero(fields[4])
	}
	parsed, err := cronParser.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, fmt.Errorf("cron %q cannot be read (%w): %s", expr, err, cronHelp)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("cron %q is not supported: %s", expr, cronHelp)
	}
	spec.Location = time.UTC // evaluated over wall-clock readings
	return &cronSpec{spec: spec, elapsed: spec.Hour&everyHour == everyHour}, nil
}

// sundayIsZero rewrites 7, which cron also takes for Sunday, in a day-of-week
// field.
func sundayIsZero(field string) string {
	parts := strings.Split(field, ",")
	for i, part := range parts {
		if part == "7" {
			parts[i] = "0"
			continue
		}
		from, ok := strings.CutSuffix(part, "-7")
		if !ok {
			continue
		}
		switch day, err := strconv.Atoi(from); {
		case err != nil:
		case day == 7:
			parts[i] = "0"
		case day == 0:
			parts[i] = "0-6"
		default:
			parts[i] = from + "-6,0"
		}
	}
	return strings.Join(parts, ",")
}

// next is the first due time after t, or zero if there is none.
func (c *cronSpec) next(t time.Time, loc *time.Location) time.Time {
	if c.elapsed {
		return c.nextElapsed(t, loc)
	}
	for wall := wallOf(t, loc); ; {
		wall = c.spec.Next(wall)
		if wall.IsZero() {
			return time.Time{}
		}
		if at, _ := place(wall, loc); at.After(t) {
			return at
		}
	}
}

// nextElapsed takes every instant whose local reading matches, one stretch of
// constant offset after the other.
func (c *cronSpec) nextElapsed(t time.Time, loc *time.Location) time.Time {
	for {
		shift, end := stretch(t, loc)
		wall := c.spec.Next(t.UTC().Add(shift))
		if wall.IsZero() {
			return time.Time{}
		}
		at := wall.Add(-shift)
		if end.IsZero() || at.Before(end) {
			return at
		}
		// Go on in the next stretch, from the second before its first.
		shift, _ = stretch(end, loc)
		before := end.UTC().Add(shift - time.Second)
		if c.spec.Next(before).Equal(before.Add(time.Second)) {
			return end.UTC()
		}
		t = end
	}
}
