package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

const defaultLimit = 50

// listing is the result of list_schedules.
type listing struct {
	Schedules  []view       `json:"schedules"`
	More       int          `json:"more,omitempty"` // beyond the limit
	Unreadable []unreadable `json:"unreadable,omitempty"`
	Timezone   string       `json:"timezone,omitempty"` // of the person, in the answer to a command
	Text       string       `json:"text"`
}

type unreadable struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

func (s *scheduler) list(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct {
		All   bool `json:"all"`
		Limit int  `json:"limit"`
	}
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	if args.Limit <= 0 {
		args.Limit = defaultLimit
	}
	rows, err := s.all(ctx, c, func(sc schedule.Schedule) bool { return args.All || !sc.Finished() && sc.Owner == "" })
	if err != nil {
		return sdk.ToolResult{}, err
	}
	out := listing{Schedules: []view{}, More: max(0, len(rows)-args.Limit)}
	var lines []string
	for _, r := range rows[:min(len(rows), args.Limit)] {
		v := viewOf(r.Schedule, c, s.now())
		out.Schedules = append(out.Schedules, v)
		lines = append(lines, v.line())
	}
	if len(rows) == 0 {
		lines = append(lines, "No schedules.")
	}
	if out.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", out.More))
	}
	s.mu.Lock()
	for _, id := range slices.Sorted(maps.Keys(s.unreadable)) {
		if !c.Principal.SeesOwners() { // it is not known whose it is
			break
		}
		out.Unreadable = append(out.Unreadable, unreadable{id, s.unreadable[id]})
		lines = append(lines, fmt.Sprintf("%s  unreadable, will not fire: %s", id, s.unreadable[id]))
	}
	s.mu.Unlock()
	if c.Command != "" {
		out.Timezone = s.zoneOf(c).String()
	}
	out.Text = strings.Join(lines, "\n")
	return sdk.JSON(out)
}
