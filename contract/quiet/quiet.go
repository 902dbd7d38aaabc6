// Package quiet computes a person's quiet hours: the part of each day in which they get
// only what they ask for.
package quiet

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// Hours are quiet hours, in minutes after midnight, which may go over
// midnight.
type Hours struct{ from, to int }

// form is "22:00-07:00", "22-7" or "22:00 to 7:00".
var form = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d{1,2})(?:[:.](\d\d))?\s*(?:-|–|—|to|до)\s*(\d{1,2})(?:[:.](\d\d))?$`)
})

// Parse reads quiet hours as people write them; ok is false if they are none.
func Parse(text string) (h Hours, ok bool) {
	m := form().FindStringSubmatch(text)
	if m == nil {
		return Hours{}, false
	}
	h.from, h.to = minutes(m[1], m[2]), minutes(m[3], m[4])
	return h, h.from >= 0 && h.to >= 0 && h.from != h.to
}

// minutes is a time of day in minutes; -1: there is no such time. 24:00 is midnight.
func minutes(hour, minute string) int {
	h, _ := strconv.Atoi(hour)
	m, _ := strconv.Atoi(minute) // empty: 0
	switch {
	case h == 24 && m == 0:
		return 0
	case h > 23 || m > 59:
		return -1
	}
	return 60*h + m
}

// String is the form that is stored and shown.
func (h Hours) String() string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d", h.from/60, h.from%60, h.to/60, h.to%60)
}

// Until returns when the quiet hours end in which now is, as Hours.String writes them;
// zero: it is in none. Where a clock change repeats or skips a time, they begin and end
// once.
func Until(hours string, now time.Time, zone *time.Location) (end time.Time) {
	h, ok := Parse(hours)
	if !ok {
		return time.Time{}
	}
	year, month, day := now.In(zone).Date()
	for _, begins := range []int{day - 1, day} {
		ends := begins
		if h.to <= h.from {
			ends++
		}
		from := time.Date(year, month, begins, 0, h.from, 0, 0, zone)
		to := time.Date(year, month, ends, 0, h.to, 0, 0, zone)
		if !now.Before(from) && now.Before(to) {
			return to
		}
	}
	return time.Time{}
}
