package bus

import (
	"context"
	"slices"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// buryHead ends the head of a lane as dead, which no handler holds. The lane is
// fetching until that is durable. The caller holds b.mu.
func (b *Bus) buryHead(l *lane, reason string) {
	it, sub := l.items[0], l.sub
	l.begin(nil)
	b.spawnLocked(func() {
		b.commitEnd(nil, it.Seq, func(tx *Tx, silent bool) error {
			d, err := tx.Delivery(it.Seq, sub.ID)
			if err != nil || d == nil || !slices.Contains(unsettled, d.State) {
				return err
			}
			d.Uncertain = d.Uncertain || it.Uncertain
			return tx.bury(*d, sub.Extension, reason, silent)
		}, func(err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.end(l, err); err != nil {
				return
			}
			b.offer(l)
			b.dispatch(sub.sink)
			b.buryOld(l)
		})
	})
}

// bury ends a delivery as dead that no handler holds.
func (t *Tx) bury(d journal.Delivery, extension, reason string, silent bool) error {
	e, err := t.Event(d.Seq)
	if err != nil {
		return err
	}
	d.State, d.Reason, d.SettledAt = journal.Dead, reason, t.Now
	if err := t.Settle(d, d.State, d.Reason); err != nil || e == nil {
		return err
	}
	return t.died(d, e, extension, silent)
}

// buryOld ends the head of a lane if it is too old and no handler can get it now.
// The caller holds b.mu.
func (b *Bus) buryOld(l *lane) {
	if l.lease == nil && !l.fetching && len(l.items) > 0 && !l.sub.isEnding(l) && b.tooOld(l.items[0]) && !b.closing {
		b.buryHead(l, l.items[0].tooOldReason())
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
