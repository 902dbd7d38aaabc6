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
	// Pruning uses small transactions, so that no commit waits for long: at most
	// pruneMost events, and fewer if they take longer than pruneHold.
	pruneMost  = 200
	pruneLeast = 20
	pruneHold  = 2 * time.Millisecond
	// Pruning takes at most one part in pruneShare of the writer's time, disk
	// included.
	pruneShare = 10
	prunePause = 20 * time.Millisecond // at least
)

// pruning is how fast pruning goes.
type pruning struct {
	batch   int
	holding time.Duration // how long the last transaction blocked others
	took    time.Duration // until it was durable
}

// pause is how long to wait before the next transaction, after one.
func (p *pruning) pause() time.Duration {
	if p.batch = min(p.batch+pruneLeast, pruneMost); p.holding > pruneHold {
		p.batch = max(p.batch/2, pruneLeast)
	}
	return max((pruneShare-1)*p.took, prunePause)
}

// retentionLoop prunes old settled events, ends deliveries that got too old, and
// removes subscriptions that were parked for too long.
func (b *Bus) retentionLoop(ctx context.Context) {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	ticker := time.NewTicker(ageEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := b.age(ctx); err != nil && ctx.Err() == nil {
				b.log.Error("end old deliveries", "error", err)
			}
			continue
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		more, err := b.Prune(time.UnixMicro(b.clock.Steady()))
		if err != nil && ctx.Err() == nil {
			b.log.Error("prune old events", "error", err)
		}
		if timer.Reset(pruneEvery); more {
			timer.Reset(b.pruning.pause())
		}
	}
}

// Prune removes one batch of events that are old enough at the time, and reports
// whether there may be more.
func (b *Bus) Prune(now time.Time) (more bool, err error) {
	events, dead := b.retain[0], b.retain[1]
	var began, done time.Time
	err = b.Do(func(tx *Tx) error {
		more, began = false, time.Now()
		defer func() { done = time.Now() }()
		if err := tx.endParked(now.Add(-parkedFor).UnixMicro()); err != nil || events <= 0 {
			return err
		}
		more, err = tx.Prune(now.Add(-events).UnixMicro(), now.Add(-max(dead, events)).UnixMicro(), b.pruning.batch)
		return err
	})
	if err != nil {
		return false, err
	}
	b.pruning.holding, b.pruning.took = done.Sub(began), time.Since(began)
	return more, nil
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
		t.changeSubscriptions(func(subs map[int64]*subscription) {
			for _, id := range doomed {
				delete(subs, id)
			}
		})
	}
	return nil
}

// endInputs ends the inputs of an agent as dead whose subscription is deleted: the
// senders get an answer, and no turn stays open.
func (t *Tx) endInputs(s journal.Subscription) error {
	if s.Pattern != inputPattern(s.Extension) {
		return nil
	}
	ds, err := t.Deliveries(journal.DeliveryFilter{Subscription: s.ID, States: unsettled, Limit: math.MaxInt32})
	if err != nil {
		return err
	}
	slices.SortFunc(ds, func(a, b journal.Delivery) int { return cmp.Compare(a.Rank, b.Rank) })
	for _, d := range ds {
		current, err := t.Delivery(d.Seq, s.ID)
		if err != nil {
			return err
		}
		if current == nil || !slices.Contains(unsettled, current.State) {
			continue // it belonged to a turn that has just ended
		}
		d.Reason = s.Extension + " did not run for more than " + parkedFor.String()
		if err := t.Settle(d, journal.Dead, d.Reason); err != nil {
			return err
		}
		if err := t.died(d, nil, s.Extension); err != nil {
			return err
		}
	}
	return nil
}
