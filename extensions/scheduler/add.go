package scheduler

import (
	"context"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// keyPrefix holds the id of the schedule that was added with a key. The row goes with the
// schedule's.
const keyPrefix = "key/"

// add creates a schedule of either kind, for programs: with a key it is created once, however
// often and after whatever crash the call is repeated.
func (s *scheduler) add(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct {
		Key  string `json:"key"`
		Cron string `json:"cron"`
		// Every is any value: the schedule is checked with all fields later.
		Every *float64 `json:"every_seconds"`
	}
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	kind := schedule.Once
	if args.Cron != "" || args.Every != nil {
		kind = schedule.Recurring
	}
	if args.Key == "" {
		return s.create(ctx, c, kind, "")
	}
	added, err := s.k.Get(ctx, keyPrefix+args.Key)
	if err != nil {
		return sdk.ToolResult{}, fmt.Errorf("read the key of a schedule: %w", err)
	}
	if added.Version == 0 {
		return s.create(ctx, c, kind, args.Key)
	}
	r, err := s.find(ctx, c, strings.Trim(string(added.Value), `"`))
	if err != nil {
		return sdk.ToolResult{}, fmt.Errorf("the schedule that was added with this key is not there any more: %w", err)
	}
	return s.changed("scheduled", r.Schedule, c, nil)
}

// withKey adds the effects that find a new schedule by its key.
func withKey(sc schedule.Schedule, effects []sdk.Effect) []sdk.Effect {
	if sc.Key == "" {
		return effects
	}
	return append(effects, sdk.PutAt(keyPrefix+sc.Key, sc.ID, 0))
}

// forgetKey adds the effects that go with the deletion of a schedule.
func forgetKey(sc schedule.Schedule, effects ...sdk.Effect) []sdk.Effect {
	if sc.Key == "" {
		return effects
	}
	return append(effects, sdk.Delete(keyPrefix+sc.Key))
}
