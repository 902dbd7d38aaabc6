package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	mostCalendarDays = 31
	// mostFires bounds the times of one schedule in an answer.
	mostFires = 100
	// mostCalendar bounds the schedules in an answer.
	mostCalendar = 500
)

// timed is a schedule with its timing in fields, and when it is due.
type timed struct {
	ID           string      `json:"id"`
	At           string      `json:"at,omitempty"` // local time, as update_schedule takes it
	Cron         string      `json:"cron,omitempty"`
	EveryDays    int         `json:"every_days,omitempty"`
	EverySeconds float64     `json:"every_seconds,omitempty"`
	Until        string      `json:"until,omitempty"`
	Due          []time.Time `json:"due,omitempty"`  // at most 100
	More         bool        `json:"more,omitempty"` // it is due more often
}

// calendar returns when schedules are due from a time on.
func (s *scheduler) calendar(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct {
		From time.Time `json:"from"`
		Days int       `json:"days"`
	}
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	if args.Days < 1 || args.Days > mostCalendarDays {
		return sdk.ToolResult{}, fmt.Errorf("read the calendar: days is %d, give 1 to %d", args.Days, mostCalendarDays)
	}
	if now := s.now(); args.From.Before(now) {
		args.From = now.Add(1) // what is due now has been
	}
	end := args.From.AddDate(0, 0, args.Days)
	rows, err := s.all(ctx, c, func(sc schedule.Schedule) bool { return !sc.Finished() })
	if err != nil {
		return sdk.ToolResult{}, err
	}
	out := []timed{}
	for _, r := range rows[:min(len(rows), mostCalendar)] {
		out = append(out, timedOf(r.Schedule, args.From, end))
	}
	return sdk.JSON(map[string]any{"schedules": out})
}

func timedOf(sc schedule.Schedule, from, end time.Time) timed {
	const local = "2006-01-02T15:04"
	t := timed{ID: sc.ID, Cron: sc.Cron, EveryDays: sc.EveryDays, EverySeconds: sc.EverySeconds}
	if sc.At != nil {
		t.At = sc.At.In(sc.Location()).Format(local)
	}
	if sc.Until != nil {
		t.Until = sc.Until.In(sc.Location()).Format(local)
	}
	rule, err := sc.Rule()
	if err != nil || sc.State != schedule.Active {
		return t
	}
	for at := rule.Next(from.Add(-time.Nanosecond)); !at.IsZero() && at.Before(end); at = rule.Next(at) {
		if len(t.Due) == mostFires {
			t.More = true
			break
		}
		t.Due = append(t.Due, at)
	}
	return t
}
