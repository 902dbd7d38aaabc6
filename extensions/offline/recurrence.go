package offline

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/offline/grammar"
	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

var (
	// cronTiming matches the scheduler's text for the expressions of this
	// grammar: a time of day, on every day, some weekdays or a day of the month.
	cronTiming = pattern.New(`^cron "(\d+) (\d+) (\*|\d+) \* (\*|[0-6](?:[,-][0-6])*)" \([^)]*\)(?:, every (\d+) days)?`)
	// intervalTiming matches its text for an interval, such as "every 1 h 30 min".
	intervalTiming = pattern.New(`^every ((?:\d+ (?:d|h|min|s)\b ?)+)`)
	untilTiming    = pattern.New(`^, until (\w+ \d+ \w+ \d+) ([\d:]+ \([^)]*\))$`)
)

// recurrence says in words how often a recurring reminder comes. A timing that
// it doesn't know stays as the scheduler wrote it.
func (w phrases) recurrence(timing string) string {
	if m := intervalTiming.FindStringSubmatch(timing); m != nil {
		return w.interval(strings.Fields(m[1])) + w.until(timing[len(strings.TrimSpace(m[0])):])
	}
	m := cronTiming.FindStringSubmatch(timing)
	if m == nil {
		return timing
	}
	minute, _ := strconv.Atoi(m[1])
	hour, _ := strconv.Atoi(m[2])
	at := fmt.Sprintf("%02d:%02d", hour, minute)
	day, names := m[3], m[4]
	often := ""
	switch {
	case day != "*" && names != "*": // cron means either of them
		return timing
	case day != "*" && m[5] != "":
		return timing
	case day != "*":
		often = w.text("month_day", day, at)
	case names != "*":
		var days []string
		for part := range strings.SplitSeq(strings.Replace(names, "1,2,3,4,5", "1-5", 1), ",") {
			name := func(d byte) string { return w.item("weekdays", int(d-'0')) }
			if len(part) == 3 {
				days = append(days, w.text("day_range", name(part[0]), name(part[2])))
			} else {
				days = append(days, name(part[0]))
			}
		}
		often = w.text("weekly", strings.Join(days, ", "), at)
		if m[5] != "" {
			often = w.text("weekly_at", w.interval([]string{m[5], "d"}), strings.Join(days, ", "), at)
		}
	case m[5] != "":
		often = w.text("at_clock", w.interval([]string{m[5], "d"}), at)
	default:
		often = w.text("every_day", at)
	}
	return often + w.until(timing[len(m[0]):])
}

// interval formats numbers and units, such as "1", "h", "30", "min".
func (w phrases) interval(fields []string) string {
	if len(fields) == 2 && fields[0] == "1" {
		return w.text("each_" + fields[1])
	}
	var parts []string
	for i := 0; i+1 < len(fields); i += 2 {
		n, _ := strconv.Atoi(fields[i])
		parts = append(parts, fields[i]+" "+w.item(fields[i+1], plural(n, w.language)))
	}
	return w.text("every", strings.Join(parts, " "))
}

// plural is the index of the form that a number needs.
func plural(n int, language grammar.Language) int {
	russian := language == grammar.Russian
	switch {
	case n == 1 || russian && n%10 == 1 && n%100 != 11:
		return 0
	case russian && n%10 >= 2 && n%10 <= 4 && n%100/10 != 1:
		return 1
	}
	return 2
}

// until translates the end of a timing.
func (w phrases) until(end string) string {
	m := untilTiming.FindStringSubmatch(end)
	if m == nil {
		return end
	}
	day, err := time.Parse("Mon 2 Jan 2006", m[1])
	if err != nil {
		return end
	}
	return ", " + w.text("until", w.date(day)+" "+m[2])
}
