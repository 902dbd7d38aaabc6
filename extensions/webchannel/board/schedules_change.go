package board

import (
	"net/http"
	"strconv"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// scheduleChanges serves the forms of schedules.
func (b *board) scheduleChanges(mux *http.ServeMux) {
	change := func(path string, do func(q *request) (said string, err error)) {
		b.change(mux, schedulesPath+path, members, door.ScopeSchedules, func(q *request) (string, string, error) {
			said, err := do(q)
			return schedulesPath, said, err
		})
	}
	change("/add", func(q *request) (string, error) {
		fields, err := q.times("")
		if err != nil {
			return "", err
		}
		n := 0
		for _, name := range []string{"at", "delay_seconds", "every_seconds", "cron"} {
			if _, given := fields[name]; given {
				n++
			}
		}
		if n != 1 {
			return "", words.Errorf("%w: give one time: once at, once in, again and again, or a cron expression",
				contract.ErrInvalid)
		}
		name := "scheduler/schedule_once"
		if fields["every_seconds"] != nil || fields["cron"] != nil {
			name = "scheduler/schedule_recurring"
		}
		fields["message"] = q.field("text")
		if q.field("task") == "yes" {
			fields["topic"] = contract.TopicAgentTask
		}
		return do(q, name, fields)
	})
	change("/edit", func(q *request) (string, error) {
		fields, err := q.times("was-")
		if err != nil {
			return "", err
		}
		if said := q.field("text"); said != q.field("was-text") {
			fields["message"] = said
		}
		if len(fields) == 0 {
			return q.say("Nothing has changed."), nil
		}
		fields["id"], fields["action"] = q.field("id"), "edit"
		return do(q, "scheduler/update_schedule", fields)
	})
	for _, action := range []string{"pause", "resume"} {
		change("/"+action, func(q *request) (string, error) {
			return do(q, "scheduler/update_schedule", map[string]any{"id": q.field("id"), "action": action})
		})
	}
	change("/cancel", func(q *request) (string, error) {
		return do(q, "scheduler/cancel_schedule", map[string]any{"id": q.field("id")})
	})
}

// times returns the times of the form that was sent, as the scheduler's tools take them. With a
// prefix, those are left out that the field of that name has too: they have not changed.
func (q *request) times(was string) (map[string]any, error) {
	fields := map[string]any{}
	for _, f := range []struct {
		name, argument string
		minutes        bool
	}{
		{"at", "at", false}, {"in", "delay_seconds", true}, {"every", "every_seconds", true}, {"cron", "cron", false},
		{"until", "until", false},
	} {
		given := q.field(f.name)
		switch {
		case was != "" && given == q.field(was+f.name), was == "" && given == "", given == "" && f.name != "until":
		case f.minutes:
			n, err := strconv.ParseFloat(given, 64)
			if err != nil || !(n > 0 && n < 1e8) {
				return nil, words.Errorf("%w: %s is no number of minutes", contract.ErrInvalid, given)
			}
			fields[f.argument] = n * 60
		default:
			fields[f.argument] = given
		}
	}
	return fields, nil
}
