package scheduler

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
)

const peopleTime = "Mon 2 Jan 2006 15:04"

// listText formats the result of list_schedules as the answer to /schedules.
// Times are in the zone of the household, and also in that of the schedule if it
// differs.
func (s *scheduler) listText(content string) string {
	var l listing
	if err := json.Unmarshal([]byte(content), &l); err != nil {
		return content
	}
	var b strings.Builder
	if len(l.Schedules) == 0 {
		b.WriteString("Nothing is scheduled. For example, say: remind me in 5 minutes to turn off the kettle.")
	} else {
		fmt.Fprintf(&b, "Reminders and repeating schedules (times in %s):\n", s.location)
	}
	for _, v := range l.Schedules {
		b.WriteString("\n- " + s.entry(v))
	}
	if l.More > 0 {
		fmt.Fprintf(&b, "\n\nThere are %d more. To see them: `/schedules limit=%d`", l.More, l.More+len(l.Schedules))
	}
	if len(l.Unreadable) > 0 {
		b.WriteString("\n\nThese are damaged and won't fire. To remove one: `switchboard schedules cancel ID`\n")
		for _, u := range l.Unreadable {
			fmt.Fprintf(&b, "\n- %s: %s", u.ID, u.Error)
		}
	}
	return b.String()
}

// entry formats one schedule.
func (s *scheduler) entry(v view) string {
	parts := []string{v.ID + ": " + quoted(v.Message, v.Topic)}
	if v.State != string(schedule.Active) {
		parts = append(parts, v.State)
	}
	switch {
	case v.Next != nil:
		next := v.Next.In(s.location).Format(peopleTime)
		if v.Timezone != s.location.String() {
			next += " (" + v.NextLocal + ")"
		}
		parts = append(parts, next, "in "+v.In)
		if v.Kind == schedule.Recurring {
			parts = append(parts, v.Timing)
		}
	default:
		parts = append(parts, strings.TrimPrefix(v.Timing, "once, "))
	}
	parts = append(parts, "to "+v.Destination)
	if v.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("skipped %d times", v.Skipped))
	}
	if v.Problem != "" {
		parts = append(parts, "problem: "+v.Problem)
	}
	return strings.Join(parts, ", ")
}
