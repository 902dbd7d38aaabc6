package bus

import (
	"context"
	"fmt"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// patternUnroutable is the subscription whose dead letters are the events that
// the kernel could not route. It matches no topic.
const patternUnroutable = "unroutable"

func isUnroutable(s journal.Subscription) bool {
	return s.Extension == contract.KernelSource && s.Pattern == patternUnroutable
}

// recover loads the subscriptions and the heads of what is pending. It is the
// normal start: an empty store is only the easiest case.
func (b *Bus) recover(ctx context.Context) error {
	err := journal.Do(ctx, b.store, func(tx journal.Tx) error {
		known, err := tx.Subscriptions()
		if err != nil || slices.ContainsFunc(known, isUnroutable) {
			return err
		}
		return tx.PutSubscription(&journal.Subscription{Extension: contract.KernelSource, Pattern: patternUnroutable})
	})
	if err != nil {
		return err
	}
	return b.store.View(ctx, func(r journal.Reader) error {
		known, err := r.Subscriptions()
		if err != nil {
			return err
		}
		subs := map[int64]*subscription{}
		for _, k := range known {
			subs[k.ID] = b.newSubscription(k)
		}
		b.table.Store(newTable(subs))
		b.mu.Lock()
		defer b.mu.Unlock()
		return r.Pending(func(d journal.Delivery) bool {
			if sub := subs[d.Subscription]; sub != nil {
				b.add(added{sub: sub, delivery: asFound(d)})
			}
			return true
		})
	})
}

// Resubmit queues the dead deliveries of an event again, each at the end of its
// lane, and returns how many.
func (b *Bus) Resubmit(seq int64) (n int, err error) {
	orphans := 0
	err = b.Do(func(tx *Tx) error {
		n, orphans = 0, 0
		e, err := tx.Event(seq)
		if err != nil {
			return err
		}
		dead, err := tx.Deliveries(journal.DeliveryFilter{Seq: seq, States: []journal.DeliveryState{journal.Dead}})
		if err != nil {
			return err
		}
		for _, d := range dead {
			s := b.table.Load().byID[d.Subscription]
			if s == nil {
				orphans++
				continue
			}
			n++
			if s.ID == b.table.Load().unroutable {
				if err := tx.reroute(d, e); err != nil {
					return err
				}
				continue
			}
			if d.Rank, err = tx.endOfLane(d); err != nil {
				return err
			}
			d.State, d.Attempts, d.Reason, d.SettledAt, d.NotBefore, d.Resubmitted = journal.Pending, 0, "", 0, 0, tx.Now
			d.Uncertain = d.Uncertain && !s.spec.Load().Hold // who resubmits it accepts that
			if err := tx.UpdateDelivery(d); err != nil {
				return err
			}
			tx.added = append(tx.added, added{sub: s, delivery: d, event: e})
		}
		return nil
	})
	switch {
	case err != nil:
		return 0, err
	case n == 0 && orphans > 0:
		return 0, fmt.Errorf("%w: what had subscribed to event %s does not exist any more", contract.ErrNotFound, journal.EventID(seq))
	case n == 0:
		return 0, fmt.Errorf("%w: event %s has no dead delivery", contract.ErrNotFound, journal.EventID(seq))
	}
	return n, nil
}

// endOfLane is a rank behind everything that the lane of a delivery holds, and
// in front of every event that is accepted later.
func (t *Tx) endOfLane(d journal.Delivery) (int64, error) {
	last, err := t.LastSeq()
	if err != nil {
		return 0, err
	}
	rank := journal.RankOf(last)
	behind, err := t.PendingLane(d.Subscription, d.Key, rank-1, 1<<20)
	if n := len(behind); n > 0 {
		rank = behind[n-1].Rank
	}
	return rank + 1, err
}

// reroute lets the router try once more what it could not route.
func (t *Tx) reroute(d journal.Delivery, e *busv1.Event) error {
	d.State, d.SettledAt, d.Reason = journal.Done, t.Now, "routed again"
	if err := t.UpdateDelivery(d); err != nil {
		return err
	}
	return t.Following(e, func() error { return t.bus.router.Accept(t, e) })
}

// Waiting returns what waits to be sent by a channel and is in memory, each lane
// in order. Some of it may be taken meanwhile: Tx.Free says so.
func (b *Bus) Waiting(channel string) (waiting []journal.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.table.Load().all {
		if s.class() != classSend || s.Extension != channel {
			continue
		}
		for l := range s.allLanes() {
			for i, it := range l.items {
				if i > 0 || l.lease == nil && !l.fetching {
					waiting = append(waiting, it.Delivery)
				}
			}
		}
	}
	return waiting
}

// Load is how much waits for an extension.
type Load struct {
	Pattern  string
	Lanes    int
	InFlight int
}

// Loads tells how much waits, by extension.
func (b *Bus) Loads() map[string][]Load {
	b.mu.Lock()
	defer b.mu.Unlock()
	loads := map[string][]Load{}
	for _, s := range b.table.Load().all {
		flying := 0
		for _, l := range s.flying.leases {
			if !l.released {
				flying++
			}
		}
		loads[s.Extension] = append(loads[s.Extension], Load{Pattern: s.Pattern, Lanes: len(s.lanes) + len(s.singles), InFlight: flying})
	}
	return loads
}

// Peek returns the pending deliveries of a lane with their events, the head
// first.
func (t *Tx) Peek(extension, pattern, key string, limit int) (ds []journal.Delivery, events []*busv1.Event, err error) {
	s := t.bus.table.Load().named(extension, pattern)
	if s == nil {
		return nil, nil, nil
	}
	if ds, err = t.PendingLane(s.ID, key, -1<<62, limit); err == nil {
		events, err = eventsOf(t, ds)
	}
	return ds, events, err
}

func eventsOf(r journal.Reader, ds []journal.Delivery) (events []*busv1.Event, err error) {
	for _, d := range ds {
		e, err := r.Event(d.Seq)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// Behind returns the events that wait in the lane of a lease behind the one it
// was given for, those included that its turn is about.
func (b *Bus) Behind(r journal.Reader, l *Lease, limit int) (events []*busv1.Event, err error) {
	if l.item == nil {
		return nil, nil
	}
	held := b.delivery(l)
	ds, err := r.PendingLane(held.Subscription, held.Key, held.Rank, limit)
	if err != nil {
		return nil, err
	}
	return eventsOf(r, ds)
}
