package bus

import (
	"context"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// buryHead ends the head of a lane as dead, which no handler holds. The caller holds
// b.mu.
func (b *Bus) buryHead(l *lane, reason string) {
	it := l.items[0]
	l.lease = &Lease{item: it, Event: it.event, started: it.StartedAt}
	lease := l.lease
	b.spawn(func() {
		b.conclude(lease, nil, false, func(tx *Tx) error {
			tx.then = append(tx.then, func() { b.buryOld(l) })
			return tx.end(lease, b.delivery(lease), journal.Dead, reason)
		})
	})
}

// buryOld ends the head of a lane if it is too old and no handler can get it now.
// The caller holds b.mu.
func (b *Bus) buryOld(l *lane) {
	if l.lease == nil && !l.fetching && len(l.items) > 0 && !l.sub.isEnding(l) && b.tooOld(l.items[0]) && !b.closing {
		b.buryHead(l, l.items[0].tooOldReason(l.items[0].Reason))
	}
}

// ageWindow is how many events are read at once for their age.
const ageWindow = 1000

// age ends what got too old while it could not be handed out: its extension does
// not run, its channel is held, its retry is far off.
func (b *Bus) age(ctx context.Context) error {
	var unknown []*item
	b.mu.Lock()
	for _, s := range b.table.Load().all {
		if s.spec.Load().MaxAge <= 0 {
			continue
		}
		for _, l := range s.lanes {
			b.buryOld(l)
			if len(l.items) > 0 && l.items[0].created == 0 && len(unknown) < ageWindow {
				unknown = append(unknown, l.items[0])
			}
		}
	}
	b.mu.Unlock()
	created := make([]int64, len(unknown))
	err := b.store.View(ctx, func(r journal.Reader) error {
		for i, it := range unknown {
			e, err := r.Event(it.Seq)
			if err != nil {
				return err
			}
			created[i] = e.GetCreatedAtUs()
		}
		return nil
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, it := range unknown {
		it.created = created[i]
		b.buryOld(it.lane)
	}
	return err
}
