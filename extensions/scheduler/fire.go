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
	// maxConcurrent is how many schedules are settled concurrently. The kernel
	// groups their commits.
	maxConcurrent = 32
	// settleTimeout bounds the work on one schedule, so that a stuck call does
	// not delay the others for longer.
	settleTimeout = 15 * time.Second
	maxBackoff    = 30 * time.Second
)

// fireAll settles the due schedules. After a failure, it retries later.
func (s *scheduler) fireAll(ctx context.Context, ids []string) {
	var group errgroup.Group
	group.SetLimit(maxConcurrent)
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
		s.log.Warn("cannot settle a schedule, will retry", "id", id, "error", err, "retry_in", wait.String())
	}
}

// settle fires, moves or deletes one schedule as needed and sets the time of its
// next check. After an error, the caller retries.
func (s *scheduler) settle(ctx context.Context, id string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("settle schedule %s: panic: %v", id, p)
		}
	}()
	for {
		v, err := s.k.Get(ctx, rowKey(id))
		if err != nil {
			return fmt.Errorf("read schedule %s: %w", id, err)
		}
		again, waiting := s.nextCheck(id, v.Version, s.now())
		err = s.settleRow(ctx, v)
		if errors.Is(err, contract.ErrConflict) {
			continue // changed meanwhile: read it again
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
		return nil //nolint:nilerr // logged and listed; a retry would not help
	}
	now := s.now()
	if r.Finished() && !deleteAt(r.Schedule).After(now) {
		if _, err := s.k.Commit(ctx, forgetKey(r.Schedule, sdk.DeleteAt(v.Key, v.Version))...); err != nil {
			return fmt.Errorf("delete finished schedule %s: %w", r.ID, err)
		}
		return nil
	}
	if realigned, ok := r.Realign(now); ok {
		if _, err := s.k.Commit(ctx, put(realigned, r.version)); err != nil {
			return fmt.Errorf("realign schedule %s with the clock: %w", r.ID, err)
		}
		s.log.Warn("the clock was set back: realigned a recurring schedule", "id", r.ID, "next", realigned.Next)
		s.watch(realigned)
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

// fire commits a decision: the event and the advanced schedule together. It
// returns the schedule as stored.
func (s *scheduler) fire(
	ctx context.Context, d schedule.Decision, r row, after schedule.Schedule, now time.Time,
) (schedule.Schedule, error) {
	var effects sdk.Effects
	if d.Fire {
		payload, err := after.FirePayload(d, now)
		if err != nil {
			return s.pauseBroken(ctx, r, err)
		}
		effects = append(effects,
			sdk.Publish(after.Topic, payload, sdk.Dedupe(after.DedupeKey(d.Due)), sdk.Key("sched:"+r.ID)).
				Keep(contract.BlobsOf(after.Attachments)...))
	}
	effects = append(effects, put(after, r.version))
	_, err := s.k.Commit(ctx, effects...)
	switch {
	case errors.Is(err, contract.ErrDenied), errors.Is(err, contract.ErrInvalid), errors.Is(err, contract.ErrTooLarge):
		return s.pauseBroken(ctx, r, err)
	case err != nil:
		return schedule.Schedule{}, fmt.Errorf("fire schedule %s, due %s: %w", r.ID, d.Due.Format(time.RFC3339), err)
	}
	if d.Skipped > 0 {
		s.log.Warn("a schedule skipped overdue fires",
			"id", r.ID, "skipped", d.Skipped, "last_due", d.Due, "fired", d.Fire, "grace", r.Grace())
	}
	if d.Fire {
		s.log.Debug("a schedule fired", "id", r.ID, "due", d.Due, "late", d.Late)
	}
	return after, nil
}

// pauseBroken pauses a schedule whose event the kernel refuses, and stores the
// reason for list_schedules.
func (s *scheduler) pauseBroken(ctx context.Context, r row, why error) (schedule.Schedule, error) {
	s.log.Error("a schedule cannot fire and is paused", "id", r.ID, "error", why)
	paused, err := r.Pause()
	if err != nil {
		return schedule.Schedule{}, err
	}
	paused.Problem = why.Error()
	if _, err := s.k.Commit(ctx, put(paused, r.version)); err != nil {
		return schedule.Schedule{}, fmt.Errorf("pause schedule %s, which cannot fire (%w): %w", r.ID, why, err)
	}
	return paused, nil
}
