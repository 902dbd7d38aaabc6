package bus

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

const (
	ageEvery   = time.Minute
	pruneEvery = time.Hour
	pruneBatch = 200 // events of one transaction: small, so that nobody waits for it
	prunePause = 50 * time.Millisecond
)

// retentionLoop prunes what is settled and old enough, and parked subscriptions
// that did not come back.
func (b *Bus) retentionLoop(ctx context.Context) {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	ticker := time.NewTicker(ageEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := b.age(ctx); err != nil && ctx.Err() == nil {
				b.log.Error("looking for old deliveries failed", "error", err)
			}
			continue
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		more, err := b.Prune(ctx, time.Now())
		if err != nil && ctx.Err() == nil {
			b.log.Error("pruning old events failed", "error", err)
		}
		if timer.Reset(pruneEvery); more {
			timer.Reset(prunePause)
		}
	}
}

// Prune removes one batch of what may go at the time, and says whether there
// may be more.
func (b *Bus) Prune(ctx context.Context, now time.Time) (more bool, err error) {
	events, dead := b.retain[0], b.retain[1]
	err = b.doContext(ctx, func(tx *Tx) error {
		more = false
		if err := tx.endParked(now.Add(-parkedFor).UnixMicro()); err != nil || events <= 0 {
			return err
		}
		more, err = tx.Prune(now.Add(-events).UnixMicro(), now.Add(-max(dead, events)).UnixMicro(), pruneBatch)
		return err
	})
	return more && err == nil, err
}

// endParked deletes the subscriptions that were parked before the time. Nothing
// is delivered to them from this commit on.
func (t *Tx) endParked(before int64) error {
	known, err := t.Subscriptions()
	if err != nil {
		return err
	}
	var doomed []int64
	for _, s := range known {
		if s.ParkedAt > 0 && s.ParkedAt < before {
			doomed = append(doomed, s.ID)
			if err := t.endInputs(s); err != nil {
				return err
			}
			if err := t.DeleteSubscription(s.ID); err != nil {
				return err
			}
		}
	}
	if len(doomed) > 0 {
		t.changeSubscriptions(func(b *Bus) {
			for _, id := range doomed {
				delete(b.subs, id)
			}
		})
	}
	return nil
}

// endInputs has the inputs of an agent die whose subscription is deleted: whoever
// waits for an answer is told, and no turn stays begun.
func (t *Tx) endInputs(s journal.Subscription) error {
	if s.Pattern != inputPattern(s.Extension) {
		return nil
	}
	ds, err := t.Deliveries(journal.DeliveryFilter{
		Subscription: s.ID, States: []journal.DeliveryState{journal.Pending, journal.InFlight}, Limit: math.MaxInt32,
	})
	if err != nil {
		return err
	}
	slices.SortFunc(ds, func(a, b journal.Delivery) int { return cmp.Compare(a.Rank, b.Rank) })
	for _, d := range ds {
		current, err := t.Delivery(d.Seq, s.ID)
		if err != nil {
			return err
		}
		if current == nil || current.State == journal.Done || current.State == journal.Dead {
			continue // it was part of a turn that has ended just now
		}
		e, err := t.Event(d.Seq)
		if err != nil {
			return err
		}
		d.State, d.Reason, d.SettledAt = journal.Dead, s.Extension+" was away for more than "+parkedFor.String(), t.Now
		if err := t.Settle(d, d.State, d.Reason); err != nil {
			return err
		}
		if e == nil {
			continue
		}
		if err := t.died(d, e, s.Extension); err != nil {
			return err
		}
	}
	return nil
}
