package bus

import (
	"context"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

const (
	pruneEvery = time.Hour
	pruneBatch = 200 // events of one transaction: small, so that nobody waits for it
	prunePause = 50 * time.Millisecond
)

// retentionLoop prunes what is settled and old enough, and parked subscriptions
// that did not come back.
func (b *Bus) retentionLoop(ctx context.Context) {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for {
		select {
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
	events, dead := b.keep[0], b.keep[1]
	var doomed []int64
	err = journal.Do(ctx, b.store, func(tx journal.Tx) error {
		doomed = doomed[:0]
		known, err := tx.Subscriptions()
		if err != nil {
			return err
		}
		for _, s := range known {
			if s.ParkedAt > 0 && s.ParkedAt < now.Add(-parkedFor).UnixMicro() {
				doomed = append(doomed, s.ID)
				if err := tx.DeleteSubscription(s.ID); err != nil {
					return err
				}
			}
		}
		if events <= 0 {
			return nil
		}
		n, err := tx.Prune(now.Add(-events).UnixMicro(), now.Add(-max(dead, events)).UnixMicro(), pruneBatch)
		more = n == pruneBatch
		return err
	})
	if err != nil || len(doomed) == 0 {
		return more, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range doomed {
		delete(b.subs, id)
	}
	b.table.Store(newTable(b.subs))
	return more, nil
}
