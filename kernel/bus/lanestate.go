package bus

import "github.com/switchboard-run/switchboard/kernel/journal"

// manyWaiting is the most deliveries of a lane that are counted.
const manyWaiting = 100

// LaneState says whether a handler holds a lane now, and how many deliveries of
// it are not settled, the held one included.
func (b *Bus) LaneState(r journal.Reader, extension, pattern, key string) (held bool, unsettled int, err error) {
	s := b.table.Load().named(extension, pattern)
	if s == nil {
		return false, 0, nil
	}
	b.mu.Lock()
	if l := s.lanes[key]; l != nil {
		held = l.lease != nil && !l.lease.revoked
	}
	b.mu.Unlock()
	ds, err := r.PendingLane(s.ID, key, 0, manyWaiting)
	return held, len(ds), err
}
