package scheduler

import (
	"bytes"
	"context"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// handle takes over what the manifest of an extension declares. The event names
// all of its schedules: what it no longer names is removed.
func (s *scheduler) handle(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	if e.Topic != contract.TopicSchedulesDeclared {
		return nil, sdk.Drop("the scheduler does not handle " + e.Topic)
	}
	if e.Source != "kernel" {
		return nil, sdk.Drop("only the kernel declares schedules, not " + e.Source)
	}
	var declared contract.SchedulesDeclared
	if err := e.Decode(&declared); err != nil {
		return nil, err
	}
	if declared.Extension == "" {
		return nil, sdk.Drop("the declaration names no extension")
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	stored := map[string]row{}
	prefix := schedule.DeclaredID(declared.Extension, "")
	err := s.k.Scan(ctx, rowKey(prefix), func(v sdk.Value) error {
		// One that cannot be read is written anew.
		r, err := s.decode(v)
		if err != nil {
			r.ID = v.Key[len(rowPrefix):]
		}
		stored[r.ID] = r
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("scan the schedules of %s: %w", declared.Extension, err)
	}
	var effects sdk.Effects
	for _, d := range declared.Schedules {
		id := schedule.DeclaredID(declared.Extension, d.Name)
		r, exists := stored[id]
		delete(stored, id)
		if effect, ok := s.declare(declared.Extension, d, r, exists); ok {
			effects = append(effects, effect)
		}
	}
	for id, r := range stored {
		effects = append(effects, s.remove(id, r.version))
	}
	return effects, nil
}

// declare is the effect that one declaration needs, if any. One that is wrong
// harms no other.
func (s *scheduler) declare(extension string, d contract.DeclaredSchedule, r row, exists bool) (sdk.Effect, bool) {
	var was *schedule.Schedule
	if exists && r.Kind != "" {
		was = &r.Schedule
	}
	env := schedule.Env{Now: s.now(), Timezone: s.location.String(), MinEvery: s.minEvery}
	sc, err := schedule.Declare(extension, d, was, env)
	if err != nil {
		s.log.Error("a schedule of a manifest is wrong and is not taken over", "extension", extension, "name", d.Name, "error", err)
		if was == nil || was.Problem == err.Error() {
			return sdk.Effect{}, false
		}
		sc = *was
		sc.Problem = err.Error() // the one before stays in force
	}
	if was != nil {
		before, err1 := was.Encode()
		after, err2 := sc.Encode()
		if err1 == nil && err2 == nil && bytes.Equal(before, after) {
			return sdk.Effect{}, false
		}
	}
	return s.write(sc, r.version), true
}
