package bus

import (
	"context"
	"errors"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// buryItem ends a delivery as dead that nobody holds; its lane is fetching until
// that is done.
func (b *Bus) buryItem(it *item, reason string) {
	sub := it.lane.sub
	go b.conclude(it.Seq, func(tx *Tx) error {
		d, err := tx.Delivery(it.Seq, sub.ID)
		if err != nil || d == nil || d.State == journal.Done || d.State == journal.Dead {
			return err
		}
		e, err := tx.Event(it.Seq)
		if err != nil {
			return err
		}
		d.Uncertain = d.Uncertain || it.Uncertain
		if err := tx.Settle(*d, journal.Dead, reason); err != nil || e == nil {
			return err
		}
		d.State, d.Reason, d.SettledAt = journal.Dead, reason, tx.Now
		return tx.died(*d, e, sub.Extension)
	}, func(err error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		it.lane.fetching = false
		if err != nil && !errors.Is(err, journal.ErrClosed) {
			b.log.Error("burying a delivery failed; trying again", "event", journal.EventID(it.Seq), "error", err)
			b.delay(it.lane)
			return
		}
		b.offer(it.lane)
		b.dispatch(sub.sink)
		b.buryOld(it.lane)
	})
}

// buryOld ends the head of a lane that nobody can be handed now, if it is too
// old. The caller holds b.mu.
func (b *Bus) buryOld(l *lane) {
	if l.lease == nil && !l.fetching && len(l.items) > 0 && !l.sub.isEnding(l) && b.tooOld(l.items[0]) && !b.closing {
		l.fetching = true
		b.buryItem(l.items[0], l.items[0].oldAge())
	}
}

// ageWindow is how many events are read at once to learn how old they are.
const ageWindow = 1000

// age buries what got too old while it could not be handed out: its extension
// is away, its channel held, its retry far off.
func (b *Bus) age(ctx context.Context) error {
	var unknown []*item
	b.mu.Lock()
	for _, s := range b.table.Load().all {
		if s.spec.Load().MaxAge <= 0 {
			continue
		}
		for l := range s.allLanes() {
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
