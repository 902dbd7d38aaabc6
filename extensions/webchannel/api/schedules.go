package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// Schedule is a reminder, or something that the assistant does at a time.
type Schedule struct {
	ID          string     `json:"id"`
	Kind        string     `json:"kind" enum:"once,recurring"`
	State       string     `json:"state" doc:"active, paused, done, cancelled"`
	Message     string     `json:"message,omitempty"`
	Topic       string     `json:"topic" doc:"Of the event when it is due; system.user.notify: a reminder."`
	Timing      string     `json:"timing" doc:"In words."`
	EveryDays   int        `json:"every_days,omitempty"`
	Timezone    string     `json:"timezone"`
	Next        *time.Time `json:"next,omitempty"`
	NextLocal   string     `json:"next_local,omitempty"`
	In          string     `json:"in,omitempty"`
	ChannelID   string     `json:"channel_id,omitempty"`
	Destination string     `json:"destination" doc:"In words."`
	Person      string     `json:"person,omitempty" doc:"Another one, who gets it."`
	DeclaredBy  string     `json:"declared_by,omitempty" doc:"The extension whose manifest declares it."`
	CreatedBy   string     `json:"created_by,omitempty"`
	Fired       int64      `json:"fired,omitempty"`
	LastFired   *time.Time `json:"last_fired,omitempty"`
	Skipped     int64      `json:"skipped,omitempty"`
	LastSkipped *time.Time `json:"last_skipped,omitempty"`
	Problem     string     `json:"problem,omitempty" doc:"Why it could not fire."`
	NextFires   []string   `json:"next_fires,omitempty" doc:"The next three local times, after a change."`
	Notes       []string   `json:"notes,omitempty" doc:"What to know about a change."`
	Text        string     `json:"text,omitempty" doc:"The change in words."`
}

// Timing is when a schedule is due: one of delay_seconds, at, cron and every_seconds.
type Timing struct {
	DelaySeconds *float64 `json:"delay_seconds,omitempty" minimum:"1" doc:"Once, after this time."`
	At           string   `json:"at,omitempty" doc:"Once, at 18:30 or 2026-03-01T18:30."`
	Cron         string   `json:"cron,omitempty" doc:"Again and again, by local time, such as 0 9 * * 1-5."`
	EverySeconds *float64 `json:"every_seconds,omitempty" minimum:"1" doc:"Again and again, at this interval."`
	EveryDays    int      `json:"every_days,omitempty" minimum:"1" doc:"With cron: only every n-th day."`
	Until        string   `json:"until,omitempty" doc:"The last day or time of one that repeats."`
	Timezone     string   `json:"timezone,omitempty" doc:"An IANA name; absent: the person's."`
	ChannelID    string   `json:"channel_id,omitempty" doc:"Where it goes; absent: the default channel."`
	Person       string   `json:"person,omitempty" doc:"Name of another person who gets it."`
}

// NewSchedule is a schedule to add.
type NewSchedule struct {
	Message string `json:"message" minLength:"1" doc:"What to say or, with task, what to do."`
	Task    bool   `json:"task,omitempty" doc:"The assistant does what the message says, and sends the result."`
	Timing
}

// ScheduleChange has the fields to change; the others stay.
type ScheduleChange struct {
	Message string `json:"message,omitempty"`
	Timing
}

type scheduleQuery struct {
	Paging
	All bool `query:"all" doc:"Also finished and cancelled ones, and those of extensions."`
}

type (
	scheduleResponse struct{ Body Schedule }
	scheduleCreation struct {
		Key  string `header:"Idempotency-Key" hidden:"true"`
		Body NewSchedule
	}
	scheduleUpdate struct {
		ByID
		Body ScheduleChange
	}
)

// The tools of the scheduler.
const (
	listSchedules  = "scheduler/list_schedules"
	addSchedule    = "scheduler/add_schedule"
	updateSchedule = "scheduler/update_schedule"
	cancelSchedule = "scheduler/cancel_schedule"
)

const scheduleTopicTask = "system.agent.task"

func (a *api) schedules(h huma.API) {
	add(h, op{
		method: http.MethodGet, path: "/schedules", id: "list-schedules", tag: "schedules", scope: door.ScopeSchedules,
		summary: "List reminders and repeating schedules, the next due first",
	}, func(ctx context.Context, v door.Visitor, in *scheduleQuery) (*listing[Schedule], error) {
		all, err := a.allSchedules(ctx, v, in.All)
		if err != nil {
			return nil, err
		}
		return offsetPage(all, in.Paging)
	})
	add(h, op{
		method: http.MethodGet, path: "/schedules/{id}", id: "get-schedule", tag: "schedules", scope: door.ScopeSchedules,
		summary: "Show a schedule",
	}, func(ctx context.Context, v door.Visitor, in *ByID) (*scheduleResponse, error) {
		return a.schedule(ctx, v, in.ID)
	})
	add(h, op{
		method: http.MethodPost, path: "/schedules", id: "add-schedule", tag: "schedules", scope: door.ScopeSchedules,
		summary: "Set a reminder, or let the assistant do something at a time", status: http.StatusCreated,
	}, a.addSchedule)
	add(h, op{
		method: http.MethodPatch, path: "/schedules/{id}", id: "change-schedule", tag: "schedules",
		scope: door.ScopeSchedules, summary: "Change the given fields of a schedule",
	}, func(ctx context.Context, v door.Visitor, in *scheduleUpdate) (*scheduleResponse, error) {
		return a.updateSchedule(ctx, v, in.ID, "edit", in.Body)
	})
	for action, summary := range map[string]string{
		"pause": "Pause a schedule until it is resumed", "resume": "Resume a paused schedule",
	} {
		add(h, op{
			method: http.MethodPost, path: "/schedules/{id}/" + action, id: action + "-schedule", tag: "schedules",
			scope: door.ScopeSchedules, summary: summary,
		}, func(ctx context.Context, v door.Visitor, in *ByID) (*scheduleResponse, error) {
			return a.updateSchedule(ctx, v, in.ID, action, ScheduleChange{})
		})
	}
	add(h, op{
		method: http.MethodDelete, path: "/schedules/{id}", id: "cancel-schedule", tag: "schedules",
		scope: door.ScopeSchedules, summary: "Cancel a schedule for good",
		about: "It stays in the list of all schedules for a week. A message that is due and not sent yet is withdrawn.",
	}, a.cancelSchedule)
}

func (a *api) addSchedule(ctx context.Context, v door.Visitor, in *scheduleCreation) (*scheduleResponse, error) {
	fields := struct {
		NewSchedule
		Task  bool   `json:"task,omitempty"` // hides the one of NewSchedule
		Topic string `json:"topic,omitempty"`
		Key   string `json:"key,omitempty"`
	}{NewSchedule: in.Body}
	if in.Body.Task {
		fields.Topic = scheduleTopicTask
	}
	if in.Key != "" {
		fields.Key = keyID(v, in.Key)
	}
	made, err := callTool[Schedule](ctx, a, v, addSchedule, fields)
	return &scheduleResponse{made}, err
}

func (a *api) updateSchedule(
	ctx context.Context, v door.Visitor, id, action string, change ScheduleChange,
) (*scheduleResponse, error) {
	if _, err := a.schedule(ctx, v, id); err != nil {
		return nil, err
	}
	changed, err := callTool[Schedule](ctx, a, v, updateSchedule, struct {
		ID     string `json:"id"`
		Action string `json:"action"`
		ScheduleChange
	}{id, action, change})
	return &scheduleResponse{changed}, err
}

// Cancelled is what became of a schedule that was cancelled.
type Cancelled struct {
	ID       string `json:"id"`
	Status   string `json:"status" doc:"cancelled, removed, too_late"`
	LastFire string `json:"last_fire,omitempty" doc:"Of the newest message: withdrawn, or too_late."`
	Text     string `json:"text"`
}

type cancelledResponse struct{ Body Cancelled }

func (a *api) cancelSchedule(ctx context.Context, v door.Visitor, in *ByID) (*cancelledResponse, error) {
	if _, err := a.schedule(ctx, v, in.ID); err != nil {
		return nil, err
	}
	done, err := callTool[Cancelled](ctx, a, v, cancelSchedule, map[string]string{"id": in.ID})
	return &cancelledResponse{done}, err
}

func (a *api) schedule(ctx context.Context, v door.Visitor, id string) (*scheduleResponse, error) {
	all, err := a.allSchedules(ctx, v, true)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.ID == id {
			return &scheduleResponse{s}, nil
		}
	}
	return nil, missing("schedule", id)
}

func (a *api) allSchedules(ctx context.Context, v door.Visitor, all bool) ([]Schedule, error) {
	found, err := callTool[struct{ Schedules []Schedule }](ctx, a, v, listSchedules,
		map[string]any{"all": all, "limit": maxRead})
	return found.Schedules, err
}

// maxRead bounds what is read of an extension at a time; its answer is one message.
const maxRead = 10_000
