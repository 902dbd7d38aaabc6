package bus

import (
	"cmp"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// This file only reads: the deliveries that wait, and those in flight.

// Waiting returns the sends that wait for a channel and are in memory, each lane in
// order. Some of them may be taken meanwhile: see Tx.Free.
func (b *Bus) Waiting(channel string) (waiting []journal.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.table.Load().all {
		if s.class() != classSend || s.Extension != channel {
			continue
		}
		for _, l := range s.lanes {
			for i, it := range l.items {
				if i > 0 || l.lease == nil && !l.fetching {
					waiting = append(waiting, it.Delivery)
				}
			}
		}
	}
	return waiting
}

// WaitingBehind is how many deliveries wait in the lane after that of the lease, as
// far as they are in memory.
func (b *Bus) WaitingBehind(l *Lease) int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.item == nil || l.revoked {
		return 0
	}
	return int32(max(0, len(l.item.lane.items)-1))
}

// WaitingBehind is Bus.WaitingBehind for the lease of the commit.
func (t *Tx) WaitingBehind() int32 { return t.bus.WaitingBehind(t.Lease) }

// Peek returns the deliveries of a lane that are not settled with their events, the
// head first.
func (b *Bus) Peek(
	r journal.Reader, extension, pattern, key string, limit int,
) (ds []journal.Delivery, events []*busv1.Event, err error) {
	s := b.table.Load().named(extension, pattern)
	if s == nil {
		return nil, nil, nil
	}
	if ds, err = r.PendingLane(s.ID, key, -1<<62, limit); err != nil {
		return nil, nil, err
	}
	for _, d := range ds {
		e, err := r.Event(d.Seq)
		if err != nil {
			return nil, nil, err
		}
		events = append(events, e)
	}
	return ds, events, nil
}

// Peek is Bus.Peek within the commit.
func (t *Tx) Peek(extension, pattern, key string, limit int) ([]journal.Delivery, []*busv1.Event, error) {
	return t.bus.Peek(t, extension, pattern, key, limit)
}

// manyWaiting is the most deliveries of a lane that are counted.
const manyWaiting = 100

// LaneState reports whether a handler holds a lane, and how many of its deliveries are
// not settled, the held one included.
func (b *Bus) LaneState(r journal.Reader, extension, pattern, key string) (held bool, unsettled int, err error) {
	s := b.table.Load().named(extension, pattern)
	if s == nil {
		return false, 0, nil
	}
	b.mu.Lock()
	held = s.holder(key) != nil
	b.mu.Unlock()
	ds, err := r.PendingLane(s.ID, key, 0, manyWaiting)
	return held, len(ds), err
}

// Load is how much waits for a subscription, a parked one included.
type Load struct {
	Extension string
	Lanes     int
	InFlight  int
	NoCredit  bool  // the extension runs, and has never granted a delivery
	Since     int64 // when the oldest handler began, Unix microseconds; 0: none is at work
}

// Loads is how much waits, by subscription, those of the kernel left out.
func (b *Bus) Loads() map[int64]Load {
	b.mu.Lock()
	defer b.mu.Unlock()
	loads := map[int64]Load{}
	for _, s := range b.table.Load().all {
		load := Load{Extension: s.Extension, Lanes: len(s.lanes), NoCredit: b.sinks[s.Extension].mute()}
		for _, l := range s.lanes {
			if l.lease != nil {
				load.InFlight++
				load.Since = min(cmp.Or(load.Since, l.lease.started), l.lease.started)
			}
		}
		if s.Extension != contract.KernelSource {
			loads[s.ID] = load
		}
	}
	return loads
}

// Working are the leases of the turns that agents are handling.
func (t *Tx) Working() (all []*Lease) {
	t.bus.mu.Lock()
	defer t.bus.mu.Unlock()
	for _, l := range t.bus.leases {
		if l.Agent != "" && l.Call == 0 && l.taken && !l.answered && !l.revoked {
			all = append(all, l)
		}
	}
	return all
}
