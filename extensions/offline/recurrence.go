package offline

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

var (
	// cronTiming matches the scheduler's text for the expressions of this
	// grammar: a time of day, on every day, some weekdays or a day of the month.
	cronTiming = pattern.New(`^cron "(\d+) (\d+) (\*|\d+) \* (\*|[0-6](?:[,-][0-6])*)" \([^)]*\)`)
	weekday    = pattern.New(`[0-6]`)
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
	day, names := m[3], m[4]
	var often string
	switch {
	case day != "*" && names != "*": // cron means either of them
		return timing
	case day != "*":
		often = fmt.Sprintf(w.pick("on day %s of every month", "%s-го числа каждого месяца"), day)
	case names != "*":
		names = strings.Replace(names, "1,2,3,4,5", "1-5", 1)
		names = weekday.ReplaceAllStringFunc(names, func(d string) string { return w.weekdays[d[0]-'0'] })
		names = strings.NewReplacer(",", ", ", "-", w.pick(" to ", "–")).Replace(names)
		often = w.pick("every ", "по ") + names
	default:
		often = w.pick("every day", "каждый день")
	}
	return fmt.Sprintf("%s%s%02d:%02d", often, w.pick(" at ", " в "), hour, minute) + w.until(timing[len(m[0]):])
}

// units are the forms of units after the numbers 1, 2 and 5, in English and, in
// the accusative, in Russian.
var units = map[string][2][3]string{
	"d":   {{"day", "days", "days"}, {"день", "дня", "дней"}},
	"h":   {{"hour", "hours", "hours"}, {"час", "часа", "часов"}},
	"min": {{"minute", "minutes", "minutes"}, {"минуту", "минуты", "минут"}},
	"s":   {{"second", "seconds", "seconds"}, {"секунду", "секунды", "секунд"}},
}

// interval formats numbers and units, such as "1", "h", "30", "min".
func (w phrases) interval(fields []string) string {
	var parts []string
	for i := 0; i+1 < len(fields); i += 2 {
		n, _ := strconv.Atoi(fields[i])
		forms := units[fields[i+1]]
		parts = append(parts, fields[i]+" "+w.pick(forms[0][plural(n, false)], forms[1][plural(n, true)]))
	}
	text := strings.Join(parts, " ")
	rest, one := strings.CutPrefix(text, "1 ")
	switch {
	case !one || len(parts) > 1:
		return w.pick("every ", "каждые ") + text
	case strings.HasSuffix(rest, "у"): // feminine
		return "каждую " + rest
	}
	return w.pick("every ", "каждый ") + rest
}

// plural is the index of the form that a number needs.
func plural(n int, russian bool) int {
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
	if m == nil || !w.ru() {
		return end
	}
	day, err := time.Parse("Mon 2 Jan 2006", m[1])
	if err != nil {
		return end
	}
	return fmt.Sprintf(", до %s %d %s %d %s", w.weekdays[day.Weekday()], day.Day(), w.months[day.Month()-1], day.Year(),
		m[2])
}
