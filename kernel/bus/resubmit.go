package bus

import (
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

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
			d.Uncertain = d.Uncertain && !s.spec.Load().Hold // resubmitting it accepts a repetition
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
		return 0, fmt.Errorf("%w: event %s was dead for a subscription that does not exist any more", contract.ErrNotFound,
			journal.EventID(seq))
	case n == 0:
		return 0, fmt.Errorf("%w: event %s has no dead delivery", contract.ErrNotFound, journal.EventID(seq))
	}
	return n, nil
}

// endOfLane is a rank after everything that the lane of a delivery holds, and
// before every event that is accepted later.
func (t *Tx) endOfLane(d journal.Delivery) (int64, error) {
	last, err := t.LastSeq()
	if err != nil {
		return 0, err
	}
	rank := journal.RankOf(last)
	after, err := t.PendingLane(d.Subscription, d.Key, rank-1, 1<<20)
	if n := len(after); n > 0 {
		rank = after[n-1].Rank
	}
	return rank + 1, err
}

// reroute lets the Accept hook try again what could not be routed.
func (t *Tx) reroute(d journal.Delivery, e *busv1.Event) error {
	d.State, d.SettledAt, d.Reason = journal.Done, t.Now, "routed again"
	if err := t.UpdateDelivery(d); err != nil {
		return err
	}
	route, err := t.route(e)
	if err != nil || route == nil {
		return err
	}
	return t.Following(e, route)
}
