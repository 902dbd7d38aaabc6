package bus

import (
	"errors"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Outcomes applies what handlers answered: their effects together with the
// acknowledgement, or what has to happen instead. An answer under a token that
// is not valid any more changes nothing.
func (b *Bus) Outcomes(a *Actor, outcomes []*busv1.Outcome) {
	for _, o := range b.acknowledge(a, outcomes) {
		b.Outcome(a, o)
	}
}

// acknowledge settles the plain acknowledgements among the outcomes and returns
// the others. They change nothing else, so their lanes go on at once and the
// store learns of them with the next commit: losing that only repeats
// deliveries.
func (b *Bus) acknowledge(a *Actor, outcomes []*busv1.Outcome) (others []*busv1.Outcome) {
	var acked []*Lease
	b.mu.Lock()
	for _, o := range outcomes {
		l, err := b.lease(a, o.GetToken())
		if err != nil || l.item == nil || o.GetKind() != busv1.Outcome_KIND_ACK || len(o.GetEffects()) > 0 || l.item.lane.sub.class != classPlain {
			others = append(others, o)
			continue
		}
		acked = append(acked, l)
		l.item.lane.sub.acking[l.item.Seq] = struct{}{}
		b.ended(l)
	}
	if len(acked) > 0 {
		b.dispatch(acked[0].sink)
	}
	b.mu.Unlock()
	if len(acked) == 0 {
		return others
	}
	b.store.Submit(journal.Update{
		Lazy: true,
		Apply: func(tx journal.Tx) error {
			now := nowUS()
			for _, l := range acked {
				d := l.item.Delivery
				d.StartedAt, d.State, d.SettledAt = l.started, journal.Done, now
				if err := tx.UpdateDelivery(d); err != nil {
					return err
				}
			}
			return nil
		},
		Done: func(err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, l := range acked {
				d := l.item.Delivery
				d.State = journal.Done
				delete(l.item.lane.sub.acking, d.Seq)
				for _, f := range b.settling[d.Seq] {
					go f(d)
				}
				delete(b.settling, d.Seq)
			}
			if err != nil && !errors.Is(err, journal.ErrClosed) {
				b.log.Error("storing acknowledgements failed; they are handled again after a restart", "events", len(acked), "error", err)
			}
		},
	})
	return others
}

// Outcome is Outcomes for one answer that is no plain acknowledgement.
func (b *Bus) Outcome(a *Actor, o *busv1.Outcome) {
	b.mu.Lock()
	l, err := b.lease(a, o.GetToken())
	b.mu.Unlock()
	if err != nil || l.item == nil {
		return
	}
	switch o.GetKind() {
	case busv1.Outcome_KIND_ACK:
		b.settle(l, o, journal.Done)
	case busv1.Outcome_KIND_DROP:
		b.settle(l, o, journal.Dead)
	case busv1.Outcome_KIND_RETRY:
		b.again(l, time.Duration(o.GetRetryAfterMs())*time.Millisecond, o.GetReason())
	case busv1.Outcome_KIND_UNKNOWN:
		b.failed(l, o.GetReason(), true)
	default:
		b.failed(l, o.GetReason(), false)
	}
}

// settle commits the effects and the end of the delivery.
func (b *Bus) settle(l *Lease, o *busv1.Outcome, state journal.DeliveryState) {
	actor := &Actor{}
	if l.sink != nil {
		actor = l.sink.actor
	}
	b.update(actor, l.Token, func(tx *Tx) error {
		tx.Ending = true
		if _, err := tx.apply(o.GetEffects()); err != nil {
			return err
		}
		return tx.end(l, state, o.GetReason())
	}, func(err error) {
		if err != nil {
			go b.refused(l, err)
		}
	})
}

// end settles the delivery of the lease.
func (t *Tx) end(l *Lease, state journal.DeliveryState, reason string) error {
	d := l.item.Delivery
	d.StartedAt, d.State, d.Reason, d.SettledAt = l.started, state, reason, t.Now
	if err := t.UpdateDelivery(d); err != nil {
		return err
	}
	if state == journal.Dead {
		if err := t.died(d, l.Event, l.item.lane.sub.Extension); err != nil {
			return err
		}
	}
	t.gone = append(t.gone, place{sub: l.item.lane.sub, seq: d.Seq, delivery: d, lease: l})
	// Void from here on: an update behind this one must not be made under it. If
	// this one fails, revive gives the lane back.
	t.bus.mu.Lock()
	defer t.bus.mu.Unlock()
	l.revoked = true
	return nil
}

// ended frees the lane of a lease whose delivery is settled.
func (b *Bus) ended(l *Lease) {
	lane := l.item.lane
	b.revoke(l)
	lane.items = lane.items[1:]
	if lane.key == "" {
		b.looseEnded(lane.sub)
		return
	}
	b.settled(lane)
}

// revive takes back that a lease ended, because the commit that ended it failed.
func (b *Bus) revive(l *Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leases[l.Token] == l {
		l.revoked = false
	}
}

func (b *Bus) looseEnded(s *subscription) {
	s.loose--
	if s.further && s.loose < looseWindow/8 {
		s.further = false
		b.refillLoose(s)
	}
}

// died tells the world that a delivery is dead; one of such an event dies
// silently.
func (t *Tx) died(d journal.Delivery, e *busv1.Event, extension string) error {
	if e.GetTopic() == contract.TopicDeliveryDead {
		return nil
	}
	return t.Following(e, func() error {
		if err := t.bus.router.Died(t, &d, e, extension); err != nil {
			return err
		}
		if e.GetHop() >= contract.MaxHops {
			return nil // what dies by the cap publishes nothing more
		}
		_, err := t.Emit(contract.TopicDeliveryDead, "", contract.DeliveryDead{
			EventID: e.GetId(), Topic: e.GetTopic(), Extension: extension, Attempts: d.Attempts, Reason: d.Reason,
		})
		return err
	})
}

// refused deals with an answer that could not be committed.
func (b *Bus) refused(l *Lease, err error) {
	b.revive(l)
	switch {
	case errors.Is(err, contract.ErrStale), errors.Is(err, journal.ErrClosed):
	case errors.Is(err, contract.ErrConflict):
		b.mu.Lock()
		lane := l.item.lane
		lane.conflict++
		after := time.Duration(min(lane.conflict-1, 20)) * 50 * time.Millisecond
		b.mu.Unlock()
		b.again(l, after, err.Error())
	case permanent(err):
		b.update(Kernel, "", func(tx *Tx) error {
			if err := tx.hold(l); err != nil {
				return err
			}
			return tx.end(l, journal.Dead, err.Error())
		}, func(e error) {
			if e != nil {
				go b.retryLater(l, e)
			}
		})
	default:
		b.log.Error("committing an answer failed; the delivery is repeated", "event", l.Event.GetId(), "topic", l.Event.GetTopic(), "error", err)
		b.again(l, time.Second, err.Error())
	}
}

// again gives the delivery out later, without counting this attempt.
func (b *Bus) again(l *Lease, after time.Duration, reason string) {
	if b.tooOld(l) {
		b.bury(l, fmt.Sprintf("not handled within %s; the last word was: %s", l.item.lane.sub.spec.Load().MaxAge, reason))
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.revoked {
		return
	}
	b.revoke(l)
	b.requeue(l.item, after)
}

func (b *Bus) requeue(it *item, after time.Duration) {
	lane := it.lane
	if after > 0 {
		lane.wake = nowUS() + after.Microseconds()
	}
	b.offer(lane)
	if lane.sub.sink != nil {
		b.dispatch(lane.sub.sink)
	}
}

func (b *Bus) tooOld(l *Lease) bool {
	age := l.item.lane.sub.spec.Load().MaxAge
	return age > 0 && nowUS()-l.Event.GetCreatedAtUs() > age.Microseconds()
}

func (b *Bus) bury(l *Lease, reason string) {
	b.update(Kernel, "", func(tx *Tx) error {
		if err := tx.hold(l); err != nil {
			return err
		}
		return tx.end(l, journal.Dead, reason)
	}, func(err error) {
		if err != nil && !errors.Is(err, contract.ErrStale) {
			b.log.Error("burying a delivery failed", "event", l.Event.GetId(), "error", err)
			go b.retryLater(l, err)
		}
	})
}

// retryLater gives a delivery out again after the store refused its end.
func (b *Bus) retryLater(l *Lease, err error) {
	if errors.Is(err, contract.ErrStale) || errors.Is(err, journal.ErrClosed) {
		return
	}
	b.revive(l)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !l.revoked {
		b.revoke(l)
		b.requeue(l.item, time.Second)
	}
}

// failed counts a failure, and gives the delivery out again with back-off, or
// buries it.
func (b *Bus) failed(l *Lease, reason string, uncertain bool) {
	var dead bool
	b.update(Kernel, "", func(tx *Tx) error {
		if err := tx.hold(l); err != nil {
			return err
		}
		var err error
		dead, err = tx.fail(l, reason, uncertain)
		return err
	}, func(err error) {
		if err != nil {
			go b.retryLater(l, err)
			return
		}
		if dead {
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.revoke(l)
		b.requeue(l.item, b.backoff(l.item.Attempts))
	})
}

// fail writes down a failed attempt.
func (t *Tx) fail(l *Lease, reason string, uncertain bool) (dead bool, err error) {
	b := t.bus
	sub := l.item.lane.sub
	spec := sub.spec.Load()
	d := l.item.Delivery
	d.Attempts++
	d.Reason, d.StartedAt = reason, l.started
	d.Uncertain = d.Uncertain || uncertain
	if sub.class == classSend && !d.Uncertain {
		d.State = journal.Pending // it is known that nothing was sent
	}
	b.mu.Lock()
	l.item.Delivery = d
	b.mu.Unlock()
	switch {
	case spec.MaxDeliver > 0 && d.Attempts >= spec.MaxDeliver:
		return true, t.end(l, journal.Dead, fmt.Sprintf("failed %d times; the last time: %s", d.Attempts, reason))
	case uncertain && spec.Hold:
		return true, t.end(l, journal.Dead, "it is unknown whether it was sent, and the configuration says not to repeat it then: "+reason)
	case b.tooOld(l):
		return true, t.end(l, journal.Dead, fmt.Sprintf("not handled within %s; the last time: %s", spec.MaxAge, reason))
	}
	return false, t.UpdateDelivery(d)
}

// Gone ends a generation of an extension: its tokens are void, and its
// deliveries are given out again. An attempt that a handler had taken is
// counted, unless the extension was stopped on purpose.
func (b *Bus) Gone(extension string, generation int64, reason string, onPurpose bool) {
	b.mu.Lock()
	s := b.sinks[extension]
	if s == nil || s.actor.Generation != generation {
		b.mu.Unlock()
		return
	}
	s.close()
	delete(b.sinks, extension)
	leases := make([]*Lease, 0, len(s.leases))
	for l := range s.leases {
		leases = append(leases, l)
	}
	for _, sub := range s.subs {
		sub.sink = nil
	}
	for token, l := range b.leases {
		if l.item == nil && l.Extension == extension && l.Generation == generation {
			l.revoked = true
			delete(b.leases, token)
		}
	}
	b.mu.Unlock()
	for _, l := range leases {
		b.abandoned(l, reason, onPurpose)
	}
}

func (b *Bus) abandoned(l *Lease, reason string, onPurpose bool) {
	class := l.item.lane.sub.class
	var dead bool
	b.update(Kernel, "", func(tx *Tx) error {
		if err := tx.hold(l); err != nil {
			return err
		}
		b.mu.Lock()
		taken := l.taken
		b.mu.Unlock()
		var err error
		switch {
		case taken && !onPurpose:
			dead, err = tx.fail(l, reason, class == classSend)
		case class == classSend:
			d := l.item.Delivery
			d.Uncertain = d.Uncertain || taken
			if !taken && !d.Uncertain {
				d.State = journal.Pending
			}
			b.mu.Lock()
			l.item.Delivery = d
			b.mu.Unlock()
			err = tx.UpdateDelivery(d)
		}
		return err
	}, func(err error) {
		if dead && err == nil || errors.Is(err, contract.ErrStale) || errors.Is(err, journal.ErrClosed) {
			return
		}
		if err != nil {
			b.revive(l)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.revoke(l)
		var after time.Duration
		if l.taken && !onPurpose {
			after = b.backoff(l.item.Attempts)
		}
		b.requeue(l.item, after)
	})
}

// reserve says whether a pending delivery is in nobody's hands, so that it may
// be settled by the commit being applied.
func (b *Bus) reserve(s *subscription, d journal.Delivery) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, acked := s.acking[d.Seq]; acked {
		return false
	}
	for l := range b.sinkLeases(s) {
		if l.item != nil && l.item.Seq == d.Seq && l.item.Subscription == d.Subscription && !l.revoked {
			return false
		}
	}
	if lane := s.lanes[d.Key]; lane != nil && len(lane.items) > 0 && lane.items[0].Seq == d.Seq && lane.fetching {
		return false
	}
	return true
}

func (b *Bus) sinkLeases(s *subscription) map[*Lease]struct{} {
	if s.sink == nil {
		return nil
	}
	return s.sink.leases
}
