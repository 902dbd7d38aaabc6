package bus

import (
	"errors"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// acked stands for the commit of an acknowledgement that is not durable yet.
var acked = &Tx{}

// acknowledge removes a delivery whose acknowledgement changes nothing else: its
// lane goes on at once, and the next commit stores it. Losing that only repeats
// the delivery.
func (b *Bus) acknowledge(l *Lease) {
	sub := l.item.lane.sub
	b.release(l)
	b.remove(sub, l.item.Key, l.item.Seq)
	sub.ending[l.item.Seq] = acked
}

// storeAcks stores acknowledgements with the next commit.
func (b *Bus) storeAcks(leases []*Lease) {
	b.store.Submit(journal.Update{
		Lazy: true,
		Apply: func(tx journal.Tx) error {
			now := b.clock.Now()
			for _, l := range leases {
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
				b.log.Error("store acknowledgements: trying again", "events", len(leases), "error", err)
				b.later(func() { b.storeAcks(leases) })
				return
			}
			for _, l := range leases {
				d := l.item.Delivery
				d.State = journal.Done
				delete(l.item.lane.sub.ending, d.Seq)
				b.reportSettled(d)
			}
		},
	})
}
