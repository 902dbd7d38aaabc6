package scheduler

import (
	"time"

	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// A handler returns its effects and learns nothing of their commit. So the row
// is looked at a moment later, and again in growing distances, until it has
// changed or so much time has passed that it never will.
const (
	firstLook   = 50 * time.Millisecond
	giveUpAfter = 2 * time.Minute
)

type expectation struct {
	version int64 // what the row has until then
	until   time.Time
	wait    time.Duration
}

// write is the effect that stores a schedule if its row has still the version,
// and has the row looked at once it is stored.
func (s *scheduler) write(sc schedule.Schedule, version int64) sdk.Effect {
	s.expect(sc.ID, version)
	return put(sc, version)
}

func put(sc schedule.Schedule, version int64) sdk.Effect {
	return sdk.PutAt(rowKey(sc.ID), sc, version)
}

func (s *scheduler) expect(id string, version int64) {
	now := s.now()
	s.mu.Lock()
	s.expected[id] = expectation{version: version, until: now.Add(giveUpAfter), wait: firstLook}
	s.mu.Unlock()
	s.clock.SetEarlier(id, now.Add(firstLook))
}

// lookAgain tells when to look again at a row that has the version, if it is
// still expected to change.
func (s *scheduler) lookAgain(id string, version int64, now time.Time) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.expected[id]
	if !ok {
		return time.Time{}, false
	}
	if e.version != version || now.After(e.until) {
		delete(s.expected, id)
		return time.Time{}, false
	}
	e.wait *= 2
	s.expected[id] = e
	return now.Add(e.wait), true
}
