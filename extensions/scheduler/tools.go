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
	messageField = `
		"message": {"type": "string", "description":
			"The text for the user, or the instruction for the agent. Write it so that it makes sense on its own."}`
	whereFields = `
		"timezone": {"type": "string", "description":
			"IANA zone such as Europe/Berlin, only if it is not the user's own."},
		"channel_id": {"type": "string", "description":
			"A channel of list_channels, only if the user names one. Default: this conversation."},
		"topic": {"type": "string", "description":
			"system.user.notify (default) sends the message to the user; system.agent.task has the agent act on it."},
		"payload": {"type": "object", "description":
			"More fields of the event: agent_id for system.agent.task, any for other topics."}`
	onceFields = `
		"delay_seconds": {"type": "number", "description": "Seconds from now; an hour and a half is 5400."},
		"at": {"type": "string", "description":
			"Local date and time such as 2026-03-01T18:30, or a time such as 18:30 for its next occurrence;` +
		` with an offset for another zone."}`
	recurringFields = `
		"cron": {"type": "string", "description":
			"Minute hour day-of-month month day-of-week, in local time: 30 8 * * 1-5 is 08:30 on weekdays."},
		"every_seconds": {"type": "number", "description": "An interval, independent of the time of day."},
		"until": {"type": "string", "description": "The last date (inclusive) or local date and time."},
		"grace": {"type": ["number", "string"], "description":
			"How late it may still fire after the computer was off: seconds, or a duration such as 30m."}`
	idField = `"id": {"type": "string", "description": "Such as r1."}`
)

func schema(required string, fields ...string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(
		`{"type": "object", "additionalProperties": false, "required": [%s], "properties": {%s}}`,
		required, strings.Join(fields, ", ")))
}

// tools are offered to agents and, by name, to the command line. Calls may be
// repeated: a change is committed with the result of the call, or under a commit
// id of its own.
func (s *scheduler) tools() []sdk.Tool {
	return []sdk.Tool{
		{
			Name: "schedule_once",
			Description: "Remind the user, or have the agent do something, once. Give either delay_seconds or at. " +
				"Tell the user the time and destination of the result.",
			Schema:     schema(`"message"`, messageField, onceFields, whereFields),
			Idempotent: true,
			Call:       s.scheduleOnce,
		},
		{
			Name: "schedule_recurring",
			Description: "Remind the user, or have the agent do something, repeatedly. " +
				"Give either cron or every_seconds. Tell the user the next times and destination of the result.",
			Schema:     schema(`"message"`, messageField, recurringFields, whereFields),
			Idempotent: true,
			Call:       s.scheduleRecurring,
		},
		{
			Name:        "list_schedules",
			Description: "List the household's reminders and recurring schedules, the next due first.",
			Schema: schema(``,
				`"all": {"type": "boolean", "description": "Include finished and cancelled ones, and extensions'."}`,
				`"limit": {"type": "integer", "minimum": 1, "description": "The most to list. Default: 50."}`),
			ReadOnly: true,
			Command:  "schedules",
			Say:      s.listText,
			Call:     s.list,
		},
		{
			Name: "cancel_schedule",
			Description: "Cancel a reminder or recurring schedule permanently. " +
				"A fired message that is not delivered yet is withdrawn; the result says whether that was in time.",
			Schema:     schema(`"id"`, idField),
			Idempotent: true,
			Call:       s.cancel,
		},
		{
			Name:        "update_schedule",
			Description: "Pause or resume a schedule, or change the given fields.",
			Schema: schema(`"id"`, idField,
				`"action": {"enum": ["pause", "resume", "edit"], "description": "Default: edit."}`,
				messageField, onceFields, recurringFields, whereFields),
			Idempotent: true,
			Call:       s.update,
		},
	}
}

// env returns the environment of a call's request.
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

func (s *scheduler) changed(
	status string, sc schedule.Schedule, c sdk.ToolCall, notes []string, effects ...sdk.Effect,
) (sdk.ToolResult, error) {
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

// zoneNote says that times are in UTC: the time zone may not be configured.
func zoneNote(r schedule.Request, sc schedule.Schedule) []string {
	if (r.At != nil || r.Cron != nil) && r.Timezone == nil && sc.Timezone == time.UTC.String() {
		return []string{"times are in UTC: to use local time, set timezone in config.yaml"}
	}
	return nil
}
