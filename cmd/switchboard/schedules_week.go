package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/sdk/admin"
)

const scheduleCalendar = "scheduler/calendar"

// dueTime is one time at which a schedule is due, as `schedules week --json` prints it.
type dueTime struct {
	At      time.Time `json:"at"`
	ID      string    `json:"id"`
	Message string    `json:"message"`
	More    bool      `json:"more,omitempty"` // it is due more often than is listed
}

func newSchedulesWeek() *cobra.Command {
	c := &cobra.Command{
		Use: "week", Short: "Show when reminders are due in the next days", Args: cobra.NoArgs,
		Long: "Shows each time at which a schedule is due in the next seven days, the next first: at most a hundred times\n" +
			"of one schedule.",
	}
	asJSON := jsonFlag(c)
	days := c.Flags().Int("days", 7, "how many days, at most 31")
	c.RunE = withKernel("show the week", func(c *cobra.Command, k *admin.Client, _ []string) error {
		calendar, err := callTool[struct {
			Schedules []struct {
				ID   string      `json:"id"`
				Due  []time.Time `json:"due"`
				More bool        `json:"more"`
			} `json:"schedules"`
		}](c.Context(), k, scheduleCalendar, map[string]any{"days": *days})
		if err != nil {
			return err
		}
		all, err := readSchedules(c.Context(), k, true)
		if err != nil {
			return err
		}
		messages := map[string]string{}
		for _, s := range all.Schedules {
			if messages[s.ID] = s.Message; s.Message == "" {
				messages[s.ID] = s.Topic
			}
		}
		rows := []dueTime{}
		for _, s := range calendar.Schedules {
			for i, at := range s.Due {
				rows = append(rows, dueTime{at, s.ID, messages[s.ID], s.More && i == len(s.Due)-1})
			}
		}
		slices.SortStableFunc(rows, func(a, b dueTime) int { return a.At.Compare(b.At) })
		return list(c, *asJSON, rows, "DUE ID WHAT", fmt.Sprintf("Nothing is due in the next %s.", count(*days, "day")),
			func(p *printer, d dueTime) []cell {
				what := quote(d.Message)
				if d.More {
					what += " and so on"
				}
				return []cell{text(p.day(d.At)), text(d.ID), text(what)}
			})
	})
	return c
}
