package scheduler

import (
	"context"

	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

func (s *scheduler) scheduleOnce(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	return s.create(ctx, c, schedule.Once)
}

func (s *scheduler) scheduleRecurring(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	return s.create(ctx, c, schedule.Recurring)
}

func (s *scheduler) create(ctx context.Context, c sdk.ToolCall, kind string) (sdk.ToolResult, error) {
	var r schedule.Request
	if err := c.Decode(&r); err != nil {
		return sdk.ToolResult{}, err
	}
	sc, notes, err := schedule.New(kind, r, s.env(c))
	if err != nil {
		return sdk.ToolResult{}, err
	}
	sc.ReplyTo, sc.CreatedBy, sc.Principal, sc.Language = c.ReplyTo, c.Sender, c.Principal, c.Language
	warnings, err := s.checkDestination(ctx, sc)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	notes = append(append(notes, zoneNote(r, sc)...), warnings...)
	if err := s.ready(ctx); err != nil {
		return sdk.ToolResult{}, err
	}
	id, counted := s.newID()
	sc.ID = id
	return s.changed("scheduled", sc, c, notes, counted, s.write(sc, 0))
}
