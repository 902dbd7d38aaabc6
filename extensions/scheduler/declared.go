package scheduler

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

func (s *scheduler) handle(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	switch e.Topic {
	case contract.TopicSchedulesDeclared:
		return s.declared(ctx, e)
	case contract.TopicPersonRevoked:
		return s.revoked(ctx, e)
	}
	return nil, sdk.Drop("the scheduler does not handle " + e.Topic)
}

// declared updates the schedules that an extension's manifest declares. The event
// lists all of them: stored ones that it does not list are removed.
func (s *scheduler) declared(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	if e.Source != "kernel" {
		return nil, sdk.Drop("schedules are declared by the kernel, not by " + e.Source)
	}
	var declared contract.SchedulesDeclared
	if err := e.Decode(&declared); err != nil {
		return nil, err
	}
	if declared.Extension == "" {
		return nil, sdk.Drop("the declaration has no extension")
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	stored := map[string]row{}
	prefix := schedule.DeclaredID(declared.Extension, "")
	err := s.k.Scan(ctx, rowKey(prefix), func(v sdk.Value) error {
		r, err := s.decode(v)
		if err != nil { // unreadable: replaced below
			r.ID = v.Key[len(rowPrefix):]
		}
		stored[r.ID] = r
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read schedules of %s: %w", declared.Extension, err)
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

// declare returns the effect of one declaration, if it has one. An invalid
// declaration affects no other.
func (s *scheduler) declare(extension string, d contract.DeclaredSchedule, r row, exists bool) (sdk.Effect, bool) {
	var old *schedule.Schedule
	if exists && r.Kind != "" {
		old = &r.Schedule
	}
	env := schedule.Env{Now: s.now(), Timezone: s.location.String(), MinEvery: time.Second} // as the owner wants it
	sc, err := schedule.Declare(extension, d, old, env)
	if err != nil {
		s.log.Error("a manifest declares an invalid schedule, which is ignored",
			"extension", extension, "name", d.Name, "error", err)
		if old == nil || old.Problem == err.Error() {
			return sdk.Effect{}, false
		}
		sc = *old
		sc.Problem = err.Error() // keep the old schedule
	}
	if old != nil {
		before, err1 := old.Encode()
		after, err2 := sc.Encode()
		if err1 == nil && err2 == nil && bytes.Equal(before, after) {
			return sdk.Effect{}, false
		}
	}
	return s.write(sc, r.version), true
}
