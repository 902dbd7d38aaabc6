package bus

import (
	"errors"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Resubmit queues the dead deliveries of an event again, each at the end of its
// lane, and returns how many.
func (b *Bus) Resubmit(id string) (n int, err error) {
	orphans := 0
	err = b.Do(func(tx *Tx) error {
		n, orphans = 0, 0
		e, err := tx.Event(journal.ParseEventID(id))
		if err == nil && e == nil {
			err = fmt.Errorf("%w: there is no event %q", contract.ErrNotFound, id)
		}
		if err != nil {
			return err
		}
		dead, err := tx.Deliveries(journal.DeliveryFilter{Seq: e.GetSeq(), States: []journal.DeliveryState{journal.Dead}})
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
			if err := tx.resubmit(s, d, e); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return 0, err
	case n == 0 && orphans > 0:
		return 0, fmt.Errorf("%w: event %s was dead for a subscription that does not exist any more", contract.ErrNotFound,
			id)
	case n == 0:
		return 0, fmt.Errorf("%w: event %s has no dead delivery", contract.ErrNotFound, id)
	}
	return n, nil
}

// resubmit queues a dead delivery again, or does what replaces it.
func (t *Tx) resubmit(s *subscription, d journal.Delivery, e *busv1.Event) error {
	replacement, reason, err := t.replacement(s, e)
	switch {
	case err != nil:
		return err
	case replacement != nil:
		d.State, d.SettledAt, d.Reason = journal.Done, t.Now, reason
		return errors.Join(t.UpdateDelivery(d), t.Following(e, replacement))
	}
	if d.Rank, err = t.endOfLane(d); err != nil {
		return err
	}
	d.State, d.Attempts, d.Reason, d.SettledAt, d.NotBefore, d.Resubmitted = journal.Pending, 0, "", 0, 0, t.Now
	d.Uncertain = d.Uncertain && !s.spec.Load().Hold // resubmitting it accepts a repetition
	t.added = append(t.added, added{sub: s, delivery: d, event: e})
	return t.UpdateDelivery(d)
}

// replacement returns what is done in place of a dead delivery, and why; nil: nothing.
// The Accept hook tries again what could not be routed.
func (t *Tx) replacement(s *subscription, e *busv1.Event) (route func() error, reason string, err error) {
	switch {
	case s.ID == t.bus.table.Load().unroutable:
		if route, err = t.route(e); route == nil {
			route = NoRoute
		}
		return route, "routed again", err
	case s.class() == classSend && t.bus.hooks.Resend != nil:
		route, err = t.bus.hooks.Resend(t, e)
	}
	return route, "sent again, to the present owner", err
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
