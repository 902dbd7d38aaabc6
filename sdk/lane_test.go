package sdk

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

type otherKey struct{}

func TestLaneContext(t *testing.T) {
	t.Parallel()
	base := context.WithValue(t.Context(), otherKey{}, "value")
	c := &laneContext{base: base, token: "t1"}
	child, cancel := context.WithTimeout(c, time.Hour)
	defer cancel()
	if LaneOf(child) != "t1" || child.Value(otherKey{}) != "value" || child.Err() != nil {
		t.Errorf("lane %q, value %v, err %v", LaneOf(child), child.Value(otherKey{}), child.Err())
	}
	c.end(ErrEnded)
	<-child.Done()
	if !errors.Is(context.Cause(child), ErrEnded) || !errors.Is(c.Err(), context.Canceled) {
		t.Errorf("cause %v, err %v", context.Cause(child), c.Err())
	}
}

func TestLaneContextDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &laneContext{base: context.Background(), deadline: time.Now().Add(time.Minute)}
		if d, ok := c.Deadline(); !ok || !d.Equal(time.Now().Add(time.Minute)) {
			t.Errorf("deadline %v, %v", d, ok)
		}
		time.Sleep(time.Minute - time.Nanosecond)
		if c.Err() != nil {
			t.Errorf("early: %v", c.Err())
		}
		time.Sleep(time.Second)
		if !errors.Is(c.Err(), context.DeadlineExceeded) {
			t.Errorf("late: %v", c.Err())
		}
		c.finish()
	})
}

func TestLaneContextEndsWithItsBaseAndItsHandler(t *testing.T) {
	t.Parallel()
	base, cancel := context.WithCancelCause(t.Context())
	running, finished := &laneContext{base: base}, &laneContext{base: base}
	finished.finish()
	if !errors.Is(finished.Err(), context.Canceled) {
		t.Errorf("used after its handler: %v", finished.Err())
	}
	if running.Err() != nil {
		t.Errorf("running: %v", running.Err())
	}
	cancel(errShutdown)
	if <-running.Done(); !errors.Is(context.Cause(running), errShutdown) {
		t.Errorf("cause %v", context.Cause(running))
	}
	err := interrupted(running, running.Err())
	if !errors.Is(err, errShutdown) || interrupted(running, nil) != nil {
		t.Errorf("interrupted: %v", err)
	}
	if other := errors.New("other"); !errors.Is(interrupted(running, other), other) ||
		errors.Is(interrupted(running, other), errShutdown) {
		t.Error("another error is attributed to the shutdown")
	}
}
