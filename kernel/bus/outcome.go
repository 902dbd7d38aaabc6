package bus

import (
	"errors"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Outcomes applies the answers of handlers: their effects together with the
// acknowledgement, or what has to happen instead. An answer under a token that
// is not valid any more, and a second one under the same token, change nothing.
func (b *Bus) Outcomes(a *Actor, outcomes []*busv1.Outcome) { b.outcomes(a, outcomes, "") }

// Outcome is Outcomes for one answer.
func (b *Bus) Outcome(a *Actor, o *busv1.Outcome) { b.Answer(a, o, "") }

// Answer is Outcome for a command: with an ack, the text goes to the person who gave
// it, in the same commit.
func (b *Bus) Answer(a *Actor, o *busv1.Outcome, text string) {
	b.outcomes(a, []*busv1.Outcome{o}, text)
}

func (b *Bus) outcomes(a *Actor, outcomes []*busv1.Outcome, text string) {
	var acked []*Lease
	var others []func()
	b.mu.Lock()
	for _, o := range outcomes {
		l := b.leases[o.GetToken()]
		if l == nil || l.Extension != a.ID || l.Generation != a.Generation || l.item == nil || l.answered {
			continue
		}
		l.answered, l.taken, l.answer = true, true, text
		if !l.revoked && l.item.lane.sub.class() == classPlain && o.GetKind() == busv1.Outcome_KIND_ACK &&
			len(o.GetEffects()) == 0 {
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

func (b *Bus) outcome(l *Lease, o *busv1.Outcome) {
	switch o.GetKind() {
	case busv1.Outcome_KIND_ACK:
		b.settle(l, o, journal.Done)
	case busv1.Outcome_KIND_DROP:
		b.settle(l, o, journal.Dead)
	case busv1.Outcome_KIND_RETRY:
		b.again(l, time.Duration(o.GetRetryAfterMs())*time.Millisecond, o.GetReason())
	default:
		b.failed(l, o.GetReason(), o.GetKind() == busv1.Outcome_KIND_UNKNOWN)
	}
}

// settle commits the effects and the end of the delivery.
func (b *Bus) settle(l *Lease, o *busv1.Outcome, state journal.DeliveryState) {
	if len(o.GetEffects()) > 0 {
		b.share.Note(l.Extension)
	}
	checked := b.effects.check(o.GetEffects())
	class := l.item.lane.sub.class()
	b.conclude(l, o, false, func(tx *Tx) error {
		tx.Ending = true
		if _, err := tx.apply(o.GetEffects(), checked); err != nil {
			return err
		}
		if state == journal.Done && (class == classInput || class == classCommand) && b.hooks.Ack != nil {
			if err := b.hooks.Ack(tx, l.answer); err != nil {
				return err
			}
		}
		d := b.delivery(l)
		if state == journal.Dead {
			d.Attempts++
		}
		return tx.end(l, d, state, o.GetReason())
	})
}

// refused handles an answer that could not be committed.
func (b *Bus) refused(l *Lease, o *busv1.Outcome, err error) {
	sent := l.item.lane.sub.class() == classSend && o.GetKind() == busv1.Outcome_KIND_ACK
	switch conflict := errors.Is(err, contract.ErrConflict); {
	case permanent(err):
		b.bury(l, err.Error())
	case sent && conflict:
		b.bury(l, "it was sent, but what should follow from that was refused: "+err.Error())
	case sent: // it must not be sent again only because the store does not take that
		b.log.Error("store that a message was sent: trying again", "event", l.Event.GetId(), "error", err)
		b.later(func() { b.outcome(l, o) })
	case conflict:
		b.mu.Lock()
		l.item.lane.conflicts++
		conflicts := l.item.lane.conflicts
		b.mu.Unlock()
		if conflicts > maxConflicts(l.item.lane.sub) {
			b.failed(l, words.Sprintf("%d conflicts in a row: %v", conflicts, err), false)
			return
		}
		b.again(l, time.Duration(min(conflicts-1, 20))*50*time.Millisecond, err.Error())
	default:
		b.log.Error("commit an answer: repeating the delivery", "event", l.Event.GetId(), "topic", l.Event.GetTopic(),
			"error", err)
		b.again(l, time.Second, err.Error())
	}
}

// permanent reports whether repeating a commit is pointless.
func permanent(err error) bool {
	return errors.Is(err, contract.ErrDenied) || errors.Is(err, contract.ErrInvalid) ||
		errors.Is(err, contract.ErrTooLarge) || errors.Is(err, contract.ErrNotFound)
}

// maxConflicts is how many conflicts in a row may be due to other commits. With
// more of them handler and kernel disagree for good, and each counts as a
// failure; every attempt of a turn may ask a model again.
func maxConflicts(s *subscription) int {
	if s.class() == classInput {
		return 3
	}
	return 50
}

// conclude commits how an attempt ends: by the answer o, or, if that is nil, otherwise.
// It tries again until the store takes it, or another commit has ended the attempt. If
// the Dead hook's changes are refused, it is silent: the hook does not follow.
func (b *Bus) conclude(l *Lease, o *busv1.Outcome, silent bool, apply func(*Tx) error) {
	actor := Kernel
	if o != nil {
		actor = l.sink.actor
	}
	b.Commit(Change{Actor: actor, Lease: l, silent: silent, Apply: apply, Done: func(err error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case err == nil, l.released, errors.Is(err, journal.ErrClosed):
		case l.revoked, errors.Is(err, errTaken): // by a commit that may fail, or has failed
			b.later(func() { b.conclude(l, o, silent, apply) })
		case o != nil:
			b.spawn(func() { b.refused(l, o, err) })
		case permanent(err) && !silent:
			b.log.Error("what follows from a dead delivery was refused: it dies silently", "event",
				journal.EventID(l.item.Seq), "error", err)
			b.spawn(func() { b.conclude(l, nil, true, apply) })
		default:
			b.log.Error("store how an attempt ended: trying again", "event", journal.EventID(l.item.Seq), "error", err)
			b.later(func() { b.conclude(l, nil, silent, apply) })
		}
	}})
}

// again hands the delivery out later, without counting this attempt.
func (b *Bus) again(l *Lease, after time.Duration, reason string) {
	b.conclude(l, nil, false, func(tx *Tx) error {
		if !l.item.lane.sub.class().marked() && after < time.Second && !b.tooOld(l.item) {
			return tx.free(l, after) // not worth storing
		}
		d := b.delivery(l)
		d.Reason = reason
		return tx.postpone(l, d, after)
	})
}

// failed counts a failure, and hands the delivery out again after a backoff, or
// ends it as dead.
func (b *Bus) failed(l *Lease, reason string, uncertain bool) {
	b.conclude(l, nil, false, func(tx *Tx) error { return tx.fail(l, reason, uncertain) })
}

// bury ends the delivery of a lease as dead.
func (b *Bus) bury(l *Lease, reason string) {
	b.conclude(l, nil, false, func(tx *Tx) error {
		d := b.delivery(l)
		d.Attempts++
		return tx.end(l, d, journal.Dead, reason)
	})
}

// delivery is the delivery of a lease, as memory has it.
func (b *Bus) delivery(l *Lease) journal.Delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := l.item.Delivery
	if !d.Uncertain { // else it stays the time of the first attempt that may have had its effect
		d.StartedAt = l.started
	}
	return d
}

// end settles the delivery d of the lease. Its lane goes on when that is
// durable.
func (t *Tx) end(l *Lease, d journal.Delivery, state journal.DeliveryState, reason string) error {
	if err := t.revoke(l); err != nil {
		return err
	}
	if d.State, d.Reason, d.SettledAt = state, reason, t.Now; state == journal.Done {
		d.StartedAt = l.started
	}
	if t.providerID != "" {
		d.ProviderID = t.providerID
	}
	if err := t.UpdateDelivery(d); err != nil {
		return err
	}
	t.settled = append(t.settled, settled{sub: l.item.lane.sub, delivery: d, lease: l})
	if state == journal.Dead {
		return t.died(d, l.Event, l.item.lane.sub.Extension)
	}
	return nil
}

// fail stores a failed attempt.
func (t *Tx) fail(l *Lease, reason string, uncertain bool) error {
	b, sub := t.bus, l.item.lane.sub
	spec := sub.spec.Load()
	d := b.delivery(l)
	d.Attempts++
	d.Reason, d.Uncertain = reason, d.Uncertain || uncertain
	switch {
	case spec.MaxDeliver > 0 && d.Attempts >= spec.MaxDeliver:
		return t.end(l, d, journal.Dead, words.Sprintf("failed %d times; the last time: %v", d.Attempts, reason))
	case spec.Hold && b.visible(sub, d):
		return t.end(l, d, journal.Dead, reasonHeld+": "+reason)
	}
	b.mu.Lock()
	wait := b.backoff(d.Attempts)
	b.mu.Unlock()
	return t.postpone(l, d, wait)
}

// postpone stores how an attempt ended, and frees the lane when that is durable. A
// delivery that is too old dies instead.
func (t *Tx) postpone(l *Lease, d journal.Delivery, after time.Duration) error {
	if t.bus.tooOld(l.item) {
		return t.end(l, d, journal.Dead, l.item.tooOldReason(d.Reason))
	}
	if d.NotBefore = t.Now + after.Microseconds(); !d.Uncertain {
		d.State = journal.Pending // it is known that nothing was done
	}
	t.then = append(t.then, func() { l.item.Delivery = d })
	if err := t.free(l, after); err != nil {
		return err
	}
	return t.UpdateDelivery(d)
}

// free ends a lease, and has the delivery handed out again.
func (t *Tx) free(l *Lease, after time.Duration) error {
	t.then = append(t.then, func() { t.bus.requeue(l, after) })
	return t.revoke(l)
}

// requeue frees the lane and has its head handed out again. The caller holds
// b.mu.
func (b *Bus) requeue(l *Lease, after time.Duration) {
	lane := l.item.lane
	if !b.release(l) {
		return
	}
	if after > 0 {
		lane.wake = b.clock.Steady() + after.Microseconds()
	}
	b.offer(lane)
	b.dispatch(lane.sub.sink)
	b.notHandedOut(lane)
}

// hopsOfDeath is how many events beyond the limit may tell a person what died
// there.
const hopsOfDeath = 4

// died publishes that a delivery is dead, after the Dead hook. A dead delivery of
// such an event dies silently. If the event is nil, it is read.
func (t *Tx) died(d journal.Delivery, e *busv1.Event, extension string) (err error) {
	if e == nil {
		e, err = t.Event(d.Seq)
	}
	if err != nil || e == nil || e.GetTopic() == contract.TopicDeliveryDead {
		return err
	}
	return t.Following(e, func() error {
		if hook := t.bus.hooks.Dead; hook != nil && !t.silent {
			before := t.moreHops
			t.moreHops = hopsOfDeath
			err := hook(t, &d, e, extension)
			if t.moreHops = before; err != nil {
				return err
			}
		}
		if e.GetHop() >= contract.MaxHops {
			return nil // what dies by the limit publishes nothing more
		}
		_, err := t.Emit(contract.TopicDeliveryDead, "", contract.DeliveryDead{
			EventID: e.GetId(), Topic: e.GetTopic(), Extension: extension, Attempts: d.Attempts, Reason: d.Reason,
		})
		return err
	})
}
