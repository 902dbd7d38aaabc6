package bus

import (
	"context"
	"time"
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
