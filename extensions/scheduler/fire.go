package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// atOnce is how many schedules are settled concurrently: the kernel
	// commits those that wait together.
	atOnce = 32
	// settleTimeout bounds the work on one schedule, so that a kernel that
	// does not answer delays the others no longer.
	settleTimeout = 15 * time.Second
	maxBackoff    = 30 * time.Second
)

// fireAll settles what is due. It never fails: what could not be settled is
// looked at again later.
func (s *scheduler) fireAll(ctx context.Context, ids []string) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, id := range ids {
		group.Go(func() error {
			s.fireOne(ctx, id)
			return nil
		})
	}
	_ = group.Wait()
}

func (s *scheduler) fireOne(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	err := s.settle(ctx, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.failures, id)
		return
	}
	s.failures[id]++
	wait := min(time.Second<<min(s.failures[id]-1, 10), maxBackoff)
	s.clock.SetEarlier(id, s.now().Add(wait))
	if !errors.Is(err, context.Canceled) {
		s.log.Warn("a schedule could not be settled", "id", id, "error", err, "again_in", wait.String())
	}
}

// settle does what is due for one schedule and sets when to look at it again.
// An error means: try again.
func (s *scheduler) settle(ctx context.Context, id string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while settling schedule %s: %v", id, p)
		}
	}()
	for {
		v, err := s.k.Get(ctx, rowKey(id))
		if err != nil {
			return fmt.Errorf("read schedule %s: %w", id, err)
		}
		again, waiting := s.lookAgain(id, v.Version, s.now())
		err = s.settleRow(ctx, v)
		if errors.Is(err, contract.ErrConflict) {
			continue // somebody changed it: see what it is now
		}
		if err != nil {
			return err
		}
		if waiting {
			s.clock.SetEarlier(id, again)
		}
		return nil
	}
}

func (s *scheduler) settleRow(ctx context.Context, v sdk.Value) error {
	if v.Version == 0 {
		return nil
	}
	r, err := s.decode(v)
	if err != nil {
		return nil //nolint:nilerr // reported; nothing will come of it
	}
	now := s.now()
	if r.Finished() && !deleteAt(r.Schedule).After(now) {
		if _, err := s.k.Commit(ctx, sdk.DeleteAt(v.Key, v.Version)); err != nil {
			return fmt.Errorf("delete finished schedule %s: %w", r.ID, err)
		}
		return nil
	}
	if near, ok := r.Realign(now); ok {
		if _, err := s.k.Commit(ctx, put(near, r.version)); err != nil {
			return fmt.Errorf("move schedule %s to the clock, which was set back: %w", r.ID, err)
		}
		s.log.Warn("the clock was set back: a recurring schedule follows", "id", r.ID, "next", near.Next)
		s.watch(near)
		return nil
	}
	d, after, due := r.Decide(now, s.started)
	if !due {
		s.watch(r.Schedule)
		return nil
	}
	if after, err = s.fire(ctx, d, r, after, now); err != nil {
		return err
	}
	s.watch(after)
	return nil
}

// fire commits what was decided: the event and the advanced schedule at once.
// It returns the schedule as it is stored then.
func (s *scheduler) fire(ctx context.Context, d schedule.Decision, r row, after schedule.Schedule, now time.Time) (schedule.Schedule, error) {
	var effects sdk.Effects
	if d.Fire {
		payload, err := after.FirePayload(d, now)
		if err != nil {
			return s.park(ctx, r, err)
		}
		effects = append(effects, sdk.Publish(after.Topic, payload, sdk.Dedupe(after.DedupeKey(d.Due)), sdk.Key("sched:"+r.ID)))
	}
	effects = append(effects, put(after, r.version))
	_, err := s.k.Commit(ctx, effects...)
	switch {
	case errors.Is(err, contract.ErrDenied), errors.Is(err, contract.ErrInvalid), errors.Is(err, contract.ErrTooLarge):
		return s.park(ctx, r, err)
	case err != nil:
		return schedule.Schedule{}, fmt.Errorf("fire schedule %s, due %s: %w", r.ID, d.Due.Format(time.RFC3339), err)
	}
	if d.Skipped > 0 {
		s.log.Warn("a schedule skipped what was overdue", "id", r.ID, "skipped", d.Skipped, "last_due", d.Due, "fired", d.Fire, "grace", r.Grace())
	}
	if d.Fire {
		s.log.Debug("a schedule fired", "id", r.ID, "due", d.Due, "late", d.Late)
	}
	return after, nil
}

// park pauses a schedule whose event the kernel refuses whenever it is asked,
// and keeps the reason where people see it.
func (s *scheduler) park(ctx context.Context, r row, why error) (schedule.Schedule, error) {
	s.log.Error("a schedule cannot fire and is paused", "id", r.ID, "error", why)
	parked, err := r.Pause()
	if err != nil {
		return schedule.Schedule{}, err
	}
	parked.Problem = why.Error()
	if _, err := s.k.Commit(ctx, put(parked, r.version)); err != nil {
		return schedule.Schedule{}, fmt.Errorf("pause schedule %s, which cannot fire (%w): %w", r.ID, why, err)
	}
	return parked, nil
}
