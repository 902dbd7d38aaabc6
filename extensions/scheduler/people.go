package scheduler

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
)

// listText formats the result of list_schedules as the answer to /schedules.
// Times are in the zone of the person, and also in that of the schedule if it differs.
func (s *scheduler) listText(content, language string) string {
	var l listing
	if err := json.Unmarshal([]byte(content), &l); err != nil {
		return content
	}
	zone := s.location
	if theirs, err := schedule.LoadZone(l.Timezone); err == nil {
		zone = theirs
	}
	var b strings.Builder
	if len(l.Schedules) == 0 {
		b.WriteString(words.Say(language,
			"Nothing is scheduled. For example, say: remind me in 5 minutes to turn off the kettle."))
	} else {
		b.WriteString(words.Say(language, "Reminders and repeating schedules (times in %s):", zone) + "\n")
	}
	for _, v := range l.Schedules {
		b.WriteString("\n- " + entry(v, zone, language))
	}
	if l.More > 0 {
		b.WriteString("\n\n" + words.Count(language, "There is %d more. To see it: `/schedules limit=%d`",
			"There are %d more. To see them: `/schedules limit=%d`", l.More, l.More, l.More+len(l.Schedules)))
	}
	if len(l.Unreadable) > 0 {
		b.WriteString("\n\n" + words.Say(language,
			"These are damaged and won't fire. To remove one: `switchboard schedules cancel ID`") + "\n")
		for _, u := range l.Unreadable {
			fmt.Fprintf(&b, "\n- %s: %s", u.ID, words.Translate(language, u.Error))
		}
	}
	return b.String()
}

// entry formats one schedule.
func entry(v view, here *time.Location, language string) string {
	say := func(text string, args ...any) string { return words.Say(language, text, args...) }
	parts := []string{v.ID + ": " + quoted(v.Message, v.Topic)}
	if v.State != string(schedule.Active) {
		parts = append(parts, say(v.State))
	}
	switch {
	case v.Next != nil:
		next := words.Time(language, v.Next.In(here))
		if zone, err := time.LoadLocation(v.Timezone); err == nil && v.Timezone != here.String() {
			next += " (" + words.Time(language, v.Next.In(zone)) + ", " + v.Timezone + ")"
		}
		parts = append(parts, next, say("in %s", words.Translate(language, v.In)))
		if v.Kind == schedule.Recurring {
			parts = append(parts, words.Translate(language, v.Timing))
		}
	default:
		parts = append(parts, words.Translate(language, strings.TrimPrefix(v.Timing, "once, ")))
	}
	parts = append(parts, say("to %s", words.Translate(language, v.Destination)))
	if v.Skipped > 0 {
		parts = append(parts, words.Count(language, "skipped %d time", "skipped %d times", int(v.Skipped), v.Skipped))
	}
	if v.Problem != "" {
		parts = append(parts, say("problem: %s", words.Translate(language, v.Problem)))
	}
	return strings.Join(parts, ", ")
}
