package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// everyHour are the bits of an hour field with all hours.
const everyHour = 1<<24 - 1

const cronHelp = `use five fields, minute hour day-of-month month day-of-week, such as "30 8 * * 1-5" ` +
	`(08:30 on weekdays), or one of @hourly @daily @weekly @monthly @yearly`

type cronSpec struct {
	spec *cron.SpecSchedule
	// elapsed is set if the expression has all hours: then it follows elapsed
	// time through clock changes.
	elapsed bool
}

var cronParser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

func parseCron(expr string) (*cronSpec, error) {
	fields := strings.Fields(expr)
	switch {
	case len(fields) == 0:
		return nil, fmt.Errorf("parse cron: empty expression: %s", cronHelp)
	case strings.HasPrefix(fields[0], "TZ="), strings.HasPrefix(fields[0], "CRON_TZ="):
		return nil, fmt.Errorf("parse cron %q: use timezone for the zone", expr)
	case fields[0] == "@every":
		return nil, fmt.Errorf("parse cron %q: use every_seconds for an interval", expr)
	case fields[0][0] != '@' && len(fields) == 6:
		return nil, fmt.Errorf("parse cron %q: six fields, but seconds are not supported: %s", expr, cronHelp)
	case fields[0][0] != '@' && len(fields) == 5:
		fields[4] = sundayIsZero(fields[4])
	}
	parsed, err := cronParser.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, fmt.Errorf("parse cron %q: %w: %s", expr, err, cronHelp)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("parse cron %q: unsupported expression: %s", expr, cronHelp)
	}
	spec.Location = time.UTC // evaluated with wall-clock times
	return &cronSpec{spec: spec, elapsed: spec.Hour&everyHour == everyHour}, nil
}

// sundayIsZero rewrites 7, cron's other number for Sunday, in a day-of-week
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

// next returns the first due time after t, or zero if there is none.
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

// nextElapsed returns the next instant whose wall-clock time matches. It goes
// through the periods of constant offset.
func (c *cronSpec) nextElapsed(t time.Time, loc *time.Location) time.Time {
	for {
		shift, end := offsetPeriod(t, loc)
		wall := c.spec.Next(t.UTC().Add(shift))
		if wall.IsZero() {
			return time.Time{}
		}
		at := wall.Add(-shift)
		if end.IsZero() || at.Before(end) {
			return at
		}
		// Continue in the next period, from one second before its start.
		shift, _ = offsetPeriod(end, loc)
		before := end.UTC().Add(shift - time.Second)
		if c.spec.Next(before).Equal(before.Add(time.Second)) {
			return end.UTC()
		}
		t = end
	}
}
