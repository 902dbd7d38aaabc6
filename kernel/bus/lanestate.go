package bus

import "github.com/switchboard-run/switchboard/kernel/journal"

// manyWaiting is the most deliveries of a lane that are counted.
const manyWaiting = 100

// LaneState says whether a handler holds a lane now, and how many deliveries of
// it are not settled, the held one included.
func (b *Bus) LaneState(r journal.Reader, extension, pattern, key string) (held bool, unsettled int, err error) {
	var id int64
	b.mu.Lock()
	for _, s := range b.subs {
		if s.Extension == extension && s.Pattern == pattern {
			id = s.ID
			if l := s.lanes[key]; l != nil {
				held = l.lease != nil && !l.lease.revoked
			}
		}
	}
	b.mu.Unlock()
	if id == 0 {
		return false, 0, nil
	}
	ds, err := r.PendingLane(id, key, 0, manyWaiting)
	return held, len(ds), err
}
