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
// is not valid any more, and a second one under the same, changes nothing.
func (b *Bus) Outcomes(a *Actor, outcomes []*busv1.Outcome) {
	var acked []*Lease
	var others []func()
	b.mu.Lock()
	for _, o := range outcomes {
		l := b.leases[o.GetToken()] // one that is void is taken out when that is durable
		if l == nil || l.Extension != a.ID || l.Generation != a.Generation || l.item == nil || l.answered {
			continue
		}
		l.answered, l.taken = true, true
		if !l.revoked && l.item.lane.sub.class() == classPlain && o.GetKind() == busv1.Outcome_KIND_ACK && len(o.GetEffects()) == 0 {
			acked = append(acked, l)
			b.acknowledge(l)
		} else {
			others = append(others, func() { b.outcome(l, o) })
		}
	}
	b.mu.Unlock()
	if len(acked) > 0 {
		b.storeAcks(acked) // before what follows in their lanes
		b.mu.Lock()
		b.dispatch(acked[0].sink)
		b.mu.Unlock()
	}
	for _, f := range others {
		f()
	}
}

// Outcome is Outcomes for one answer.
func (b *Bus) Outcome(a *Actor, o *busv1.Outcome) { b.Outcomes(a, []*busv1.Outcome{o}) }

func (b *Bus) outcome(l *Lease, o *busv1.Outcome) {
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
	if len(o.GetEffects()) > 0 {
		b.share.seen(l.Extension)
	}
	valid := payloadsValid(o.GetEffects())
	b.update(l.sink.actor, l.Token, func(tx *Tx) error {
		tx.Ending, tx.valid = true, valid
		if _, err := tx.Apply(o.GetEffects()); err != nil {
			return err
		}
		switch class := l.item.lane.sub.class(); {
		case state != journal.Done:
		case class == classInput:
			if err := b.sessions.Acked(tx); err != nil {
				return err
			}
		case class == classCommand && o.GetContent() != "":
			if err := b.router.Answered(tx, l.Event, l.Extension, o.GetContent()); err != nil {
				return err
			}
		}
		return tx.end(l, state, o.GetReason())
	}, func(err error) {
		if err != nil {
			go b.refused(l, o, err)
		}
	})
}

// end settles the delivery of the lease. The lane goes on when that is durable.
func (t *Tx) end(l *Lease, state journal.DeliveryState, reason string) error {
	if err := t.void(l); err != nil {
		return err
	}
	d := t.bus.delivery(l)
	d.State, d.Reason, d.SettledAt = state, reason, t.Now
	if state == journal.Done || !d.Uncertain {
		d.StartedAt = l.started
	}
	if t.providerID != "" {
		d.ProviderID = t.providerID
	}
	if t.attempt != nil {
		d.Attempts, d.Uncertain, d.StartedAt = t.attempt.Attempts, t.attempt.Uncertain, t.attempt.StartedAt
	}
	if err := t.UpdateDelivery(d); err != nil {
		return err
	}
	t.gone = append(t.gone, place{sub: l.item.lane.sub, delivery: d, lease: l})
	if state == journal.Dead {
		return t.died(d, l.Event, l.item.lane.sub.Extension)
	}
	return nil
}

// delivery is what is known of the delivery of a lease.
func (b *Bus) delivery(l *Lease) journal.Delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	return l.item.Delivery
}

// died tells the world that a delivery is dead; one of such an event dies
// silently.
func (t *Tx) died(d journal.Delivery, e *busv1.Event, extension string) error {
	if e.GetTopic() == contract.TopicDeliveryDead {
		return nil
	}
	return t.Following(e, func() error {
		if !t.quiet {
			t.dying = true
			err := t.bus.router.Died(t, &d, e, extension)
			if t.dying = false; err != nil {
				return err
			}
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
func (b *Bus) refused(l *Lease, o *busv1.Outcome, err error) {
	b.mu.Lock()
	void := l.revoked
	undecided := b.undecided(l, func() { b.refused(l, o, err) })
	b.mu.Unlock()
	if undecided {
		return
	}
	switch sent := l.item.lane.sub.class() == classSend && o.GetKind() == busv1.Outcome_KIND_ACK; {
	case void, errors.Is(err, journal.ErrClosed):
	case permanent(err):
		b.bury(l, err.Error())
	case sent && errors.Is(err, contract.ErrConflict):
		b.bury(l, "it was sent, but what should follow from that was refused: "+err.Error())
	case sent:
		// It must not be sent again only because that could not be written down.
		b.log.Error("storing that a message was sent failed; trying again", "event", l.Event.GetId(), "error", err)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.later(func() { b.outcome(l, o) })
	case errors.Is(err, contract.ErrConflict):
		b.mu.Lock()
		lane := l.item.lane
		lane.conflict++
		conflicts := lane.conflict
		b.mu.Unlock()
		if conflicts > maxConflicts(lane.sub) {
			b.failed(l, fmt.Sprintf("%d conflicts in a row: %v", conflicts, err), false)
			return
		}
		b.again(l, time.Duration(min(conflicts-1, 20))*50*time.Millisecond, err.Error())
	default:
		b.log.Error("committing an answer failed; the delivery is repeated", "event", l.Event.GetId(), "topic", l.Event.GetTopic(), "error", err)
		b.again(l, time.Second, err.Error())
	}
}

// maxConflicts is how many conflicts in a row are taken for others' changes. With
// more of them handler and kernel disagree for good, and each counts as a
// failure; every attempt of a turn may ask a model anew.
func maxConflicts(s *subscription) int {
	if s.class() == classInput {
		return 3
	}
	return 50
}

// undecided reports whether a commit that is being applied has made the token
// void. What to do is known when that is durable or has failed: then comes soon
// after. The caller holds b.mu.
func (b *Bus) undecided(l *Lease, then func()) bool {
	if !l.revoked || l.released {
		return false
	}
	b.later(then)
	return true
}

// again gives the delivery out later, without counting this attempt.
func (b *Bus) again(l *Lease, after time.Duration, reason string) {
	if b.tooOld(l.item) {
		b.bury(l, l.item.oldAge()+"; the last word was: "+reason)
		return
	}
	if !l.item.lane.sub.class().marked() && after < time.Second {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !l.revoked {
			b.requeue(l, after)
		} else {
			b.undecided(l, func() { b.again(l, after, reason) })
		}
		return
	}
	b.update(Kernel, "", func(tx *Tx) error {
		if err := tx.hold(l); err != nil {
			return err
		}
		d := b.delivery(l)
		if d.Reason, d.NotBefore = reason, tx.Now+after.Microseconds(); !d.Uncertain {
			d.StartedAt, d.State = l.started, journal.Pending // nothing was sent
		}
		return tx.postpone(l, d, after)
	}, func(err error) {
		if err != nil {
			go b.retryLater(l, false, err)
		}
	})
}

// postpone writes down how an attempt ended and frees the lane when that is
// durable.
func (t *Tx) postpone(l *Lease, d journal.Delivery, after time.Duration) error {
	if err := t.void(l); err != nil {
		return err
	}
	t.then = append(t.then, func() {
		l.item.Delivery = d
		t.bus.requeue(l, after)
	})
	return t.UpdateDelivery(d)
}

// requeue frees the lane and has its head handed out again. The caller holds
// b.mu.
func (b *Bus) requeue(l *Lease, after time.Duration) {
	lane := l.item.lane
	if !b.release(l) {
		return
	}
	if after > 0 {
		lane.wake = b.clock.steady() + after.Microseconds()
	}
	b.offer(lane)
	b.dispatch(lane.sub.sink)
	b.notHandedOut(lane)
}

// conclude commits how a delivery, or an attempt at it, has ended. What the
// router wants to follow from a death must not keep the delivery alive: where that
// is refused, it dies silently.
func (b *Bus) conclude(seq int64, apply func(*Tx) error, done func(error)) {
	b.update(Kernel, "", apply, func(err error) {
		if !permanent(err) {
			done(err)
			return
		}
		b.log.Error("what follows from a dead delivery was refused; it dies silently", "event", journal.EventID(seq), "error", err)
		go b.update(Kernel, "", func(tx *Tx) error {
			tx.quiet = true
			return apply(tx)
		}, done)
	})
}

// bury ends a leased delivery as dead.
func (b *Bus) bury(l *Lease, reason string) {
	b.conclude(l.item.Seq, func(tx *Tx) error {
		if err := tx.hold(l); err != nil {
			return err
		}
		return tx.end(l, journal.Dead, reason)
	}, func(err error) {
		if err != nil {
			go b.retryLater(l, false, err)
		}
	})
}

// retryLater gives a delivery out again after the store did not take what became
// of it: uncertain, that it may have had its effect.
func (b *Bus) retryLater(l *Lease, uncertain bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if uncertain && !l.revoked && !l.item.Uncertain {
		l.item.StartedAt, l.item.Uncertain = l.started, true
	}
	if errors.Is(err, journal.ErrClosed) || b.undecided(l, func() { b.retryLater(l, uncertain, err) }) || l.revoked {
		return
	}
	b.log.Error("storing how an attempt ended failed; the delivery is repeated", "event", l.Event.GetId(), "error", err)
	b.requeue(l, time.Second)
}

// failed counts a failure, and gives the delivery out again with back-off, or
// buries it.
func (b *Bus) failed(l *Lease, reason string, uncertain bool) {
	b.conclude(l.item.Seq, func(tx *Tx) error {
		if err := tx.hold(l); err != nil {
			return err
		}
		return tx.fail(l, reason, uncertain)
	}, func(err error) {
		if err != nil {
			go b.retryLater(l, uncertain, err)
		}
	})
}

// fail writes down a failed attempt.
func (t *Tx) fail(l *Lease, reason string, uncertain bool) error {
	b := t.bus
	sub := l.item.lane.sub
	spec := sub.spec.Load()
	d := b.delivery(l)
	d.Attempts++
	if d.Reason = reason; !d.Uncertain {
		d.StartedAt, d.Uncertain = l.started, uncertain
	}
	if sub.class().marked() && !d.Uncertain {
		d.State = journal.Pending // it is known that nothing was done
	}
	t.attempt = &d
	switch {
	case spec.MaxDeliver > 0 && d.Attempts >= spec.MaxDeliver:
		return t.end(l, journal.Dead, fmt.Sprintf("failed %d times; the last time: %s", d.Attempts, reason))
	case spec.Hold && b.visible(sub, d):
		return t.end(l, journal.Dead, reasonHeld+": "+reason)
	case b.tooOld(l.item):
		return t.end(l, journal.Dead, l.item.oldAge()+"; the last time: "+reason)
	}
	b.mu.Lock()
	wait := b.backoff(d.Attempts)
	b.mu.Unlock()
	d.NotBefore = t.Now + wait.Microseconds()
	return t.postpone(l, d, wait)
}
