package item

import (
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
)

// Due is when an open item is due: a moment, or a day in the zone of the reader.
// The zero value means never.
type Due struct {
	at  time.Time
	day bool
}

const dayLayout = "2006-01-02"

// ParseDue parses a date, a local date and time, or one with an offset. For an
// empty text it returns the zero Due.
func ParseDue(text string, zone *time.Location) (Due, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Due{}, nil
	}
	if at, err := time.Parse(dayLayout, text); err == nil {
		return Due{at: at, day: true}.checked(text)
	}
	if at, err := time.Parse(time.RFC3339, strings.Replace(text, " ", "T", 1)); err == nil {
		return Due{at: at.Truncate(time.Second)}.checked(text)
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04:05",
		"2006-01-02 15:04:05"} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return Due{at: at.Truncate(time.Second)}.checked(text)
		}
	}
	return Due{}, words.Errorf(
		"parse due date %q: use a date such as 2026-03-01, or a local date and time such as 2026-03-01T18:30", text)
}

func (d Due) checked(text string) (Due, error) {
	if d.at.Year() < 1 || d.at.UTC().Year() < 1 || d.at.UTC().Year() > 9999 || d.IsZero() {
		return Due{}, words.Errorf("parse due date %q: year out of range", text)
	}
	return d, nil
}

// IsZero reports whether there is no due date.
func (d Due) IsZero() bool { return d.at.IsZero() }

// Passed reports whether the due time or day has come.
func (d Due) Passed(now time.Time) bool {
	switch {
	case d.IsZero():
		return false
	case d.day:
		return now.Format(dayLayout) >= d.at.Format(dayLayout)
	}
	return !now.Before(d.at)
}

// Late reports whether the due time or day is over.
func (d Due) Late(now time.Time) bool {
	if d.day {
		return now.Format(dayLayout) > d.at.Format(dayLayout)
	}
	return !d.IsZero() && now.After(d.at)
}

// Local formats the due date for people.
func (d Due) Local(zone *time.Location) string {
	switch {
	case d.IsZero():
		return ""
	case d.day:
		return d.at.Format("Mon 2 Jan 2006")
	}
	return d.at.In(zone).Format("Mon 2 Jan 2006 15:04")
}

// Compare orders by time. A day counts as its start; the zero Due is last.
func (d Due) Compare(o Due) int {
	switch {
	case d.IsZero() && o.IsZero():
		return 0
	case d.IsZero():
		return 1
	case o.IsZero():
		return -1
	}
	return d.at.Compare(o.at)
}

// String returns a form that ParseDue parses.
func (d Due) String() string {
	switch {
	case d.IsZero():
		return ""
	case d.day:
		return d.at.Format(dayLayout)
	}
	return d.at.Format(time.RFC3339)
}

// MarshalText implements encoding.TextMarshaler.
func (d Due) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Due) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDue(string(b), time.UTC)
	return err
}

// Equal reports whether both are the same day or the same moment.
func (d Due) Equal(o Due) bool { return d.day == o.day && d.at.Equal(o.at) }
