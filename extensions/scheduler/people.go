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
// Times are in the zone of the household, and also in that of the schedule if it
// differs.
func (s *scheduler) listText(content, language string) string {
	var l listing
	if err := json.Unmarshal([]byte(content), &l); err != nil {
		return content
	}
	var b strings.Builder
	if len(l.Schedules) == 0 {
		b.WriteString(words.Say(language,
			"Nothing is scheduled. For example, say: remind me in 5 minutes to turn off the kettle."))
	} else {
		b.WriteString(words.Say(language, "Reminders and repeating schedules (times in %s):", s.location) + "\n")
	}
	for _, v := range l.Schedules {
		b.WriteString("\n- " + s.entry(v, language))
	}
	if l.More > 0 {
		b.WriteString("\n\n" + words.Count(language, "There is %d more. To see it: `/schedules limit=%d`",
			"There are %d more. To see them: `/schedules limit=%d`", l.More, l.More, l.More+len(l.Schedules)))
	}
	if len(l.Unreadable) > 0 {
		b.WriteString("\n\n" + words.Say(language,
			"These are damaged and won't fire. To remove one: `switchboard schedules cancel ID`") + "\n")
		for _, u := range l.Unreadable {
			fmt.Fprintf(&b, "\n- %s: %s", u.ID, u.Error)
		}
	}
	return b.String()
}

// entry formats one schedule.
func (s *scheduler) entry(v view, language string) string {
	say := func(text string, args ...any) string { return words.Say(language, text, args...) }
	parts := []string{v.ID + ": " + quoted(v.Message, v.Topic)}
	if v.State != string(schedule.Active) {
		parts = append(parts, say(v.State))
	}
	switch {
	case v.Next != nil:
		next := peopleTime(*v.Next, s.location, language)
		if zone, err := time.LoadLocation(v.Timezone); err == nil && v.Timezone != s.location.String() {
			next += " (" + peopleTime(*v.Next, zone, language) + ", " + v.Timezone + ")"
		}
		parts = append(parts, next, say("in %s", spanIn(v.In, language)))
		if every, ok := strings.CutPrefix(v.Timing, "every "); ok {
			span, until, _ := strings.Cut(every, ", ")
			parts = append(parts, strings.TrimSuffix(say("every %s", spanIn(span, language))+", "+until, ", "))
		} else if v.Kind == schedule.Recurring {
			parts = append(parts, v.Timing)
		}
	default:
		parts = append(parts, strings.TrimPrefix(v.Timing, "once, "))
	}
	parts = append(parts, say("to %s", destinationIn(v.Destination, language)))
	if v.Skipped > 0 {
		parts = append(parts, words.Count(language, "skipped %d time", "skipped %d times", int(v.Skipped), v.Skipped))
	}
	if v.Problem != "" {
		parts = append(parts, say("problem: %s", v.Problem))
	}
	return strings.Join(parts, ", ")
}

// destinationIn is a destination in a language.
func destinationIn(where, language string) string {
	if channel, ok := strings.CutPrefix(where, "this conversation on "); ok {
		return words.Say(language, "this conversation on %s", channel)
	}
	if topic, ok := strings.CutPrefix(where, "event "); ok {
		return words.Say(language, "event %s", topic)
	}
	return words.Say(language, where)
}

// peopleTime formats a time in a language.
func peopleTime(t time.Time, zone *time.Location, language string) string {
	t = t.In(zone)
	return words.Say(language, t.Format("Mon")) + " " + t.Format(words.Say(language, "2 Jan 2006 15:04"))
}

// spanIn is a schedule.Span in a language.
func spanIn(span, language string) string {
	fields := strings.Fields(words.Say(language, span))
	for i, f := range fields {
		fields[i] = words.Say(language, f)
	}
	return strings.Join(fields, " ")
}
