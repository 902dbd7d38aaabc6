package schedule

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
)

const (
	// morning is the hour of "tomorrow morning".
	morning = 9
	// shortSnooze is a snooze without a time.
	shortSnooze = 10 * time.Minute
	maxSnooze   = 366 * 24 * time.Hour
)

// Compiling these takes half a mebibyte, which a process without reminders can spare.
var (
	tomorrowForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:tomorrow|завтра)(?: morning| утром| с утра)?$`)
	})
	spanForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:for |in |на |через )?(\d{1,6}) ?(\p{L}*)\.?$`)
	})
)

// spanUnits are units of a snooze by their beginning.
var spanUnits = []struct {
	begin string
	unit  time.Duration
}{
	{"s", time.Second}, {"с", time.Second}, {"m", time.Minute}, {"м", time.Minute}, {"h", time.Hour}, {"ч", time.Hour},
	{"d", 24 * time.Hour}, {"д", 24 * time.Hour}, {"w", 7 * 24 * time.Hour}, {"н", 7 * 24 * time.Hour},
}

// ParseSnooze reads until when a reminder is put off: a span such as 10m or "2 hours",
// tomorrow, or a time as ParseAt reads it.
func ParseSnooze(text string, loc *time.Location, now time.Time) (time.Time, error) {
	asked := strings.TrimSpace(text)
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	if text == "" {
		return now.Add(shortSnooze), nil
	}
	if tomorrowForm().MatchString(text) {
		today := wallOf(now, loc).Truncate(24 * time.Hour)
		at, _ := place(today.AddDate(0, 0, 1).Add(morning*time.Hour), loc)
		return at, nil
	}
	if span, ok := parseSpan(text); ok {
		if span < minDelay || span > maxSnooze {
			return time.Time{}, words.Errorf("a reminder can be put off by at most a year, and at least a second")
		}
		return now.Add(span), nil
	}
	at, _, err := ParseAt("when", asked, loc, now)
	if err != nil {
		return time.Time{}, words.Errorf("%q isn't a time: write 10m, 2h, tomorrow or 18:30", asked)
	}
	if !at.After(now) {
		return time.Time{}, words.Errorf("%q is in the past", asked)
	}
	if at.Sub(now) > maxSnooze {
		return time.Time{}, words.Errorf("a reminder can be put off by at most a year, and at least a second")
	}
	return at, nil
}

// parseSpan reads a span; a number alone is minutes.
func parseSpan(text string) (time.Duration, bool) {
	if m := spanForm().FindStringSubmatch(text); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return 0, false
		}
		if m[2] == "" {
			return time.Duration(n) * time.Minute, true
		}
		for _, u := range spanUnits {
			if strings.HasPrefix(m[2], u.begin) {
				return time.Duration(n) * u.unit, true
			}
		}
		return 0, false
	}
	span, err := time.ParseDuration(text)
	return span, err == nil
}
