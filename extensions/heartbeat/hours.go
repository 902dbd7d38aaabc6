package heartbeat

import (
	"fmt"
	"strings"
	"time"
)

// hours is a part of the day, which may go over midnight. Equal ends are the
// whole day.
type hours struct{ from, to int } // minutes since midnight

// parseHours reads 08:00-22:00; an empty text is the whole day.
func parseHours(text string) (hours, error) {
	if text == "" {
		return hours{}, nil
	}
	from, to, ok := strings.Cut(text, "-")
	h := hours{from: minutes(from), to: minutes(to)}
	if !ok || h.from < 0 || h.to < 0 {
		return hours{}, fmt.Errorf("%q is no part of a day: write it as 08:00-22:00", text)
	}
	return h, nil
}

// minutes of the day; negative if the text is no time.
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

// contain says whether a local time lies in the hours; the end does not.
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
