package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/sdk/admin"
)

// The scheduler's tools.
const (
	listSchedules     = "scheduler/list_schedules"
	scheduleOnce      = "scheduler/schedule_once"
	scheduleRecurring = "scheduler/schedule_recurring"
	updateSchedule    = "scheduler/update_schedule"
	cancelSchedule    = "scheduler/cancel_schedule"
)

// scheduleList is the result of list_schedules.
type scheduleList struct {
	Schedules  []schedule        `json:"schedules"`
	More       int               `json:"more"`
	Unreadable []json.RawMessage `json:"unreadable"`
}

// schedule has the shown fields of a schedule; raw is all of it.
type schedule struct {
	ID          string     `json:"id"`
	State       string     `json:"state"`
	Message     string     `json:"message"`
	Topic       string     `json:"topic"`
	Timing      string     `json:"timing"`
	Next        *time.Time `json:"next"`
	NextLocal   string     `json:"next_local"`
	In          string     `json:"in"`
	Destination string     `json:"destination"`
	Problem     string     `json:"problem"`
	raw         json.RawMessage
}

func (s *schedule) UnmarshalJSON(data []byte) error {
	type fields schedule
	s.raw = append(s.raw[:0], data...)
	return json.Unmarshal(data, (*fields)(s))
}

func (s schedule) MarshalJSON() ([]byte, error) { return s.raw, nil } //nolint:unparam // json.Marshaler wants it

func newSchedulesCommand() *cobra.Command {
	return group("schedules", "Reminders and repeating schedules",
		newSchedulesList(), newSchedulesWeek(), newSchedulesAdd(), newSchedulesEdit(),
		changeSchedule("pause", "Pause a schedule until you resume it", updateSchedule, "pause"),
		changeSchedule("resume", "Resume a paused schedule", updateSchedule, "resume"),
		changeSchedule("cancel", "Cancel a schedule for good", cancelSchedule, "cancel"))
}

func newSchedulesList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List reminders and recurring schedules, the next due first",
		Args: cobra.NoArgs}
	asJSON := jsonFlag(c)
	all := c.Flags().Bool("all", false, "also finished and cancelled ones, and those of extensions")
	c.RunE = withKernel("list the schedules", func(c *cobra.Command, k *admin.Client, _ []string) error {
		found, err := readSchedules(c.Context(), k, *all)
		if err != nil {
			return err
		}
		err = list(c, *asJSON, found.Schedules, "ID NEXT IN TIMING STATE TO WHAT | TO TIMING IN STATE",
			"Nothing is scheduled. Ask the assistant: “remind me in 5 minutes to turn off the kettle”.",
			func(p *printer, s schedule) []cell {
				what := s.Topic
				if s.Message != "" {
					what = quote(s.Message)
				}
				to := s.Destination
				if s.Problem != "" {
					to += "; problem: " + s.Problem
				}
				timing, next := s.Timing, "-"
				if s.Next != nil {
					next = p.day(*s.Next)
					if strings.HasPrefix(timing, "once") {
						timing = "once" // NEXT has the time
					}
				}
				return []cell{text(s.ID), text(next), text(dash(s.In)), text(timing), state(s.State), text(to),
					text(what)}
			})
		if err != nil || *asJSON {
			return err
		}
		p := printerOf(c)
		if found.More > 0 {
			p.faint(fmt.Sprintf("and %d more", found.More))
		}
		for _, u := range found.Unreadable {
			p.line("%s", p.paint(red, "can't be read and won't fire: "+string(u)))
		}
		return nil
	})
	return c
}

func readSchedules(ctx context.Context, k *admin.Client, all bool) (scheduleList, error) {
	return schedulesOf(ctx, k, "", all)
}

// schedulesOf reads the schedules that a person set up; of all people without one.
func schedulesOf(ctx context.Context, k *admin.Client, person string, all bool) (scheduleList, error) {
	return callToolOf[scheduleList](ctx, k, person, listSchedules, map[string]any{"all": all, "limit": 1000})
}
