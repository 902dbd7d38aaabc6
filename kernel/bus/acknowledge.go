package bus

import (
	"errors"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// acknowledge removes a delivery whose acknowledgement changes nothing else: its
// lane goes on at once, and the next commit stores it. Losing that only repeats
// the delivery.
func (b *Bus) acknowledge(l *Lease) {
	sub := l.item.lane.sub
	sub.acked[l.item.Seq] = struct{}{}
	b.release(l)
	b.remove(sub, l.item.Key, l.item.Seq)
}

// storeAcks stores acknowledgements with the next commit.
func (b *Bus) storeAcks(acked []*Lease) {
	b.store.Submit(journal.Update{
		Lazy: true,
		Apply: func(tx journal.Tx) error {
			now := b.clock.Now()
			for _, l := range acked {
				if err := tx.Acknowledge(l.item.Seq, l.item.Subscription, l.started, now); err != nil {
					return err
				}
			}
			return nil
		},
		Done: func(err error) {
			if errors.Is(err, journal.ErrClosed) {
				return
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if err != nil {
				b.log.Error("store acknowledgements: trying again", "events", len(acked), "error", err)
				b.later(func() { b.storeAcks(acked) })
				return
			}
			for _, l := range acked {
				d := l.item.Delivery
				d.State = journal.Done
				delete(l.item.lane.sub.acked, d.Seq)
				b.reportSettled(d)
			}
		},
	})
}
