package offline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

var (
	// cronTiming is how the scheduler shows an expression of the kinds that this
	// grammar makes: a clock, and every day, some weekdays or a day of the month.
	cronTiming = pattern.New(`^cron "(\d+) (\d+) (\*|\d+) \* (\*|[0-6](?:[,-][0-6])*)" \([^)]*\)`)
	weekday    = pattern.New(`[0-6]`)
)

// rhythm says in words how often a recurring reminder comes, if it can; anything
// else stays as the scheduler shows it.
func (w phrases) rhythm(timing string) string {
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
	return fmt.Sprintf("%s%s%02d:%02d", often, w.pick(" at ", " в "), hour, minute) + timing[len(m[0]):]
}
