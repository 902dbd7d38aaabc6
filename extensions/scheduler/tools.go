package scheduler

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// The parts of the schemas that several tools share.
const (
	messageField = `"message": {"type": "string"}`
	whereFields  = `
		"timezone": {"type": "string"},
		"channel_id": {"type": "string"},
		"person": {"type": "string"},
		"topic": {"type": "string"},
		"payload": {"type": "object"}`
	onceFields = `
		"delay_seconds": {"type": "number"},
		"at": {"type": "string", "description": "18:30 or 2026-03-01T18:30"}`
	recurringFields = `
		"cron": {"type": "string"},
		"every_days": {"type": "integer", "description": "with cron: every n-th day"},
		"every_seconds": {"type": "number"},
		"until": {"type": "string"},
		"grace": {"type": ["number", "string"]}`
	filesField = `"attachments": {"type": "array", "items": {"type": "string"}}`
	idField    = `"id": {"type": "string"}`
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
			Name:        "schedule_once",
			Description: "Set a reminder or own task for one time: delay_seconds or at.",
			Schema:      schema(`"message"`, messageField, onceFields, whereFields, filesField),
			Idempotent:  true,
			Call:        s.scheduleOnce,
		},
		{
			Name:        "schedule_recurring",
			Description: "Set a repeating reminder or own task: cron (local time) or every_seconds.",
			Schema:      schema(`"message"`, messageField, recurringFields, whereFields, filesField),
			Idempotent:  true,
			Call:        s.scheduleRecurring,
		},
		{
			Name:        "list_schedules",
			Description: "List reminders and schedules.",
			Schema: schema(``,
				`"all": {"type": "boolean"}`,
				`"limit": {"type": "integer", "minimum": 1}`),
			ReadOnly: true,
			Command:  "schedules",
			Say:      s.listText,
			Call:     s.list,
		},
		{
			Name:        "cancel_schedule",
			Description: "Cancel a reminder or schedule.",
			Schema:      schema(`"id"`, idField),
			Idempotent:  true,
			Call:        s.cancel,
		},
		{
			Name:        "update_schedule",
			Description: "Pause or resume a schedule, change the given fields, or undo the last change.",
			Schema: schema(`"id"`, idField, `"action": {"enum": ["pause", "resume", "edit", "undo"]}`,
				messageField, onceFields, recurringFields, whereFields),
			Idempotent: true,
			Call:       s.update,
		},
		{
			Name:        "calendar",
			Description: "When schedules are due in the days from a time on, and their timing in fields.",
			Schema: schema(`"days"`, `"from": {"type": "string", "format": "date-time"}`,
				`"days": {"type": "integer", "minimum": 1, "maximum": 31}`),
			ReadOnly: true,
			Private:  true,
			Call:     s.calendar,
		},
		{
			Name:        "add_schedule",
			Description: "Set a reminder for a program: another call with the same key adds nothing.",
			Schema: schema(`"message"`, messageField, onceFields, recurringFields, whereFields,
				`"key": {"type": "string", "maxLength": 200}`),
			Idempotent: true,
			Private:    true,
			Call:       s.add,
		},
		{
			Name:        "finish_reminder",
			Description: "Note that the person is done with a reminder that came.",
			Schema:      schema(``, `"id": {"type": "string", "description": "such as r7; without it, the newest here"}`),
			Idempotent:  true,
			Private:     true,
			Command:     schedule.CommandDone,
			Call:        s.done,
		},
		{
			Name:        "snooze_reminder",
			Description: "Let a reminder that came come again.",
			Schema: schema(``, `"id": {"type": "string", "description": "such as r7; without it, the newest here"}`,
				`"when": {"type": "string", "description": "10m, 2h, tomorrow or 18:30"}`),
			Idempotent: true,
			Private:    true,
			Command:    schedule.CommandSnooze,
			Call:       s.snooze,
		},
	}
}

// env returns the environment of a call's request.
func (s *scheduler) env(c sdk.ToolCall) schedule.Env {
	return schedule.Env{Now: s.now(), Timezone: s.zoneOf(c).String(), MinEvery: s.minEvery}
}

// zoneOf returns the zone of the person for whom a call is made.
func (s *scheduler) zoneOf(c sdk.ToolCall) *time.Location {
	if c.Location != nil && c.Location.String() != "Local" {
		return c.Location
	}
	return s.location
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
			out.NextFires = append(out.NextFires, words.LocalTime(at, sc.Location()))
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
