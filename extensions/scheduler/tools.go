package scheduler

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// The parts of the schemas that several tools share.
const (
	messageField = `"message": {"type": "string", "description": "What the user is to be told, or what the agent is to do. Written out: it stands alone when it arrives."}`
	whereFields  = `
		"timezone": {"type": "string", "description": "IANA zone such as Europe/Berlin, if the user means another than their own."},
		"channel_id": {"type": "string", "description": "A channel of list_channels, only if the user names one. Otherwise it comes back to this conversation."},
		"topic": {"type": "string", "description": "system.user.notify (default) tells the user the message; system.agent.task has the agent act on it."},
		"payload": {"type": "object", "description": "Further fields of the event: agent_id for system.agent.task, anything for other topics."}`
	onceFields = `
		"delay_seconds": {"type": "number", "description": "Seconds from now; an hour and a half is 5400."},
		"at": {"type": "string", "description": "Local date and time such as 2026-03-01T18:30, or just 18:30 for its next occurrence; with an offset for another zone."}`
	recurringFields = `
		"cron": {"type": "string", "description": "Minute hour day-of-month month day-of-week, in local time: 30 8 * * 1-5 is 08:30 on weekdays."},
		"every_seconds": {"type": "number", "description": "An interval that does not follow the clock."},
		"until": {"type": "string", "description": "The last date (inclusive) or local date and time."},
		"grace": {"type": ["number", "string"], "description": "How late it may still fire when the computer was off: seconds, or a duration such as 30m."}`
	idField = `"id": {"type": "string", "description": "Such as r1."}`
)

func schema(required string, fields ...string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type": "object", "additionalProperties": false, "required": [%s], "properties": {%s}}`,
		required, strings.Join(fields, ", ")))
}

// tools are offered to agents and, by name, to the command line. All of them
// may be repeated: what a call changes is committed with its result or under
// an id of its own.
func (s *scheduler) tools() []sdk.Tool {
	return []sdk.Tool{
		{
			Name:        "schedule_once",
			Description: "Remind the user, or have the agent do something, once: in delay_seconds or at a time. Give exactly one of them. Tell the user the time and destination of the result.",
			Schema:      schema(`"message"`, messageField, onceFields, whereFields),
			Idempotent:  true,
			Call:        s.scheduleOnce,
		},
		{
			Name:        "schedule_recurring",
			Description: "Remind the user, or have the agent do something, again and again: by cron or every_seconds. Give exactly one of them. Tell the user the next times and destination of the result.",
			Schema:      schema(`"message"`, messageField, recurringFields, whereFields),
			Idempotent:  true,
			Call:        s.scheduleRecurring,
		},
		{
			Name:        "list_schedules",
			Description: "List the reminders and recurring schedules of the household, the next due first.",
			Schema: schema(``,
				`"all": {"type": "boolean", "description": "Also those that are done or cancelled, and those of extensions."}`,
				`"limit": {"type": "integer", "minimum": 1, "description": "At most so many; 50 if not given."}`),
			ReadOnly: true,
			Command:  "schedules",
			Say:      s.forPeople,
			Call:     s.list,
		},
		{
			Name:        "cancel_schedule",
			Description: "Cancel a reminder or recurring schedule for good. What has fired and is not delivered yet is withdrawn; the result tells whether that was in time.",
			Schema:      schema(`"id"`, idField),
			Idempotent:  true,
			Call:        s.cancel,
		},
		{
			Name:        "update_schedule",
			Description: "Pause or resume a schedule, or change the fields that are given.",
			Schema: schema(`"id"`, idField, `"action": {"enum": ["pause", "resume", "edit"], "description": "edit if not given."}`,
				messageField, onceFields, recurringFields, whereFields),
			Idempotent: true,
			Call:       s.update,
		},
	}
}

// env is what the request of a call is judged against.
func (s *scheduler) env(c sdk.ToolCall) schedule.Env {
	zone := s.location
	if c.Location != nil && c.Location.String() != "Local" {
		zone = c.Location
	}
	return schedule.Env{Now: s.now(), Timezone: zone.String(), MinEvery: s.minEvery}
}

// changed is the result of creating or editing a schedule.
type changed struct {
	Status string `json:"status"`
	view
	NextFires []string `json:"next_fires,omitempty"` // local times
	Notes     []string `json:"notes,omitempty"`
	Text      string   `json:"text"`
}

func (s *scheduler) changed(status string, sc schedule.Schedule, c sdk.ToolCall, notes []string, effects ...sdk.Effect) (sdk.ToolResult, error) {
	now := s.now()
	out := changed{Status: status, view: viewOf(sc, c, now), Notes: notes}
	if rule, err := sc.Rule(); err == nil && sc.State == schedule.Active {
		for _, at := range rule.Upcoming(now, 3) {
			out.NextFires = append(out.NextFires, schedule.LocalTime(at, sc.Location()))
		}
	}
	out.Text = status + ": " + out.line()
	for _, note := range notes {
		out.Text += "; " + note
	}
	return sdk.JSON(out, effects...)
}

// zoneNote hints at a machine whose zone is UTC by accident.
func zoneNote(r schedule.Request, sc schedule.Schedule) []string {
	if (r.At != nil || r.Cron != nil) && r.Timezone == nil && sc.Timezone == time.UTC.String() {
		return []string{"the time is UTC because no timezone is configured: set timezone in config.yaml if the user lives elsewhere"}
	}
	return nil
}
