package scheduler

import (
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// A handler returns its effects but is not notified of their commit. So the
// scheduler checks the row soon, and again at growing intervals, until it has
// changed or the commit must have failed.
const (
	firstCheck  = 50 * time.Millisecond
	giveUpAfter = 2 * time.Minute
)

// expectation is a row that a commit is about to change.
type expectation struct {
	version int64 // before the commit
	until   time.Time
	wait    time.Duration
}

// write returns the effect that stores a schedule if its row still has the
// version, and checks the row until it is stored.
func (s *scheduler) write(sc schedule.Schedule, version int64) sdk.Effect {
	s.expect(sc.ID, version)
	return put(sc, version)
}

func put(sc schedule.Schedule, version int64) sdk.Effect {
	kept := sc.Attachments
	if sc.Before != nil {
		kept = slices.Concat(kept, sc.Before.Attachments)
	}
	return sdk.PutAt(rowKey(sc.ID), sc, version).Keep(contract.BlobsOf(kept)...)
}

func (s *scheduler) expect(id string, version int64) {
	now := s.now()
	s.mu.Lock()
	s.expected[id] = expectation{version: version, until: now.Add(giveUpAfter), wait: firstCheck}
	s.mu.Unlock()
	s.clock.SetEarlier(id, now.Add(firstCheck))
}

// nextCheck returns when to check a row with this version again. It reports
// false if the row is not expected to change.
func (s *scheduler) nextCheck(id string, version int64, now time.Time) (time.Time, bool) {
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
