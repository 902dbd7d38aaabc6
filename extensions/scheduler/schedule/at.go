package schedule

import (
	"fmt"
	"strings"
	"time"
)

var (
	offsetLayouts = []string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04Z07:00",
		"2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z0700",
	}
	localLayouts = []string{"2006-01-02T15:04:05", "2006-01-02T15:04"}
	clockLayouts = []string{"15:04:05", "15:04"}
)

// ParseAt parses a point in time written by a model or a person: a local date
// and time, a local time (its next occurrence), or a time with an offset. The
// note says if a clock change moved the time; otherwise it is empty.
func ParseAt(field, text string, loc *time.Location, now time.Time) (at time.Time, note string, err error) {
	text = strings.TrimSpace(text)
	normal := text
	if len(normal) > 10 && (normal[10] == ' ' || normal[10] == 't') {
		normal = normal[:10] + "T" + strings.TrimSpace(normal[11:])
	}
	normal = strings.ToUpper(strings.ReplaceAll(normal, " ", ""))
	for _, layout := range offsetLayouts {
		if at, err := time.Parse(layout, normal); err == nil {
			return at.UTC(), "", nil
		}
	}
	for _, layout := range localLayouts {
		if wall, err := time.Parse(layout, normal); err == nil {
			at, note := placeNoted(wall, loc)
			return at, note, nil
		}
	}
	for _, layout := range clockLayouts {
		clock, err := time.Parse(layout, normal)
		if err != nil {
			continue
		}
		today := wallOf(now, loc).Truncate(24 * time.Hour)
		for day := range 2 {
			wall := today.AddDate(0, 0, day).Add(clock.Sub(clock.Truncate(24 * time.Hour)))
			if at, note := placeNoted(wall, loc); at.After(now) {
				return at, note, nil
			}
		}
	}
	tomorrow := now.In(loc).AddDate(0, 0, 1)
	return time.Time{}, "", fmt.Errorf(`parse %s %q: use a local date and time such as "%s", `+
		`a time of day such as "18:30" (its next occurrence), or a time with an offset such as "%s"`,
		field, text, tomorrow.Format("2006-01-02T15:04"), tomorrow.Format("2006-01-02T15:04:05-07:00"))
}

func placeNoted(wall time.Time, loc *time.Location) (time.Time, string) {
	at, how := place(wall, loc)
	switch how {
	case skipped:
		return at, fmt.Sprintf("the clocks skip %s on that day, so it fires at %s",
			wall.Format("15:04"), at.In(loc).Format("15:04"))
	case repeated:
		return at, fmt.Sprintf("the clocks show %s twice on that day, and it fires the first time",
			wall.Format("15:04"))
	case unique:
	}
	return at, ""
}
