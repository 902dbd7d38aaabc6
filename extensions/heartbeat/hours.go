package heartbeat

import (
	"fmt"
	"strings"
	"time"
)

// hours is a part of the day, which may include midnight. If from equals to, it
// is the whole day.
type hours struct{ from, to int } // minutes since midnight

// parseHours parses hours such as 08:00-22:00. Empty means the whole day.
func parseHours(text string) (hours, error) {
	if text == "" {
		return hours{}, nil
	}
	from, to, ok := strings.Cut(text, "-")
	h := hours{from: minutes(from), to: minutes(to)}
	if !ok || h.from < 0 || h.to < 0 {
		return hours{}, fmt.Errorf("parse hours %q: use a range such as 08:00-22:00", text)
	}
	return h, nil
}

// minutes parses a time into minutes since midnight; negative if invalid.
func minutes(text string) int {
	if text == "24:00" {
		return 0
	}
	t, err := time.Parse("15:04", text)
	if err != nil {
		return -1
	}
	return 60*t.Hour() + t.Minute()
}

// contain reports whether a local time is within the hours, the end excluded.
func (h hours) contain(local time.Time) bool {
	at := 60*local.Hour() + local.Minute()
	switch {
	case h.from == h.to:
		return true
	case h.from < h.to:
		return h.from <= at && at < h.to
	}
	return at >= h.from || at < h.to
}
