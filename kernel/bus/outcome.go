package bus

import (
	"errors"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Outcomes applies the answers of handlers: their effects together with the
// acknowledgement, or what has to happen instead. An answer under a token that
// is not valid any more, and a second one under the same token, change nothing.
func (b *Bus) Outcomes(a *Actor, outcomes []*busv1.Outcome) {
	var acked []*Lease
	var others []func()
	b.mu.Lock()
	for _, o := range outcomes {
		l := b.leases[o.GetToken()]
		if l == nil || l.Extension != a.ID || l.Generation != a.Generation || l.item == nil || l.answered {
			continue
		}
		l.answered, l.taken = true, true
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

// Outcome is Outcomes for one answer.
func (b *Bus) Outcome(a *Actor, o *busv1.Outcome) { b.Outcomes(a, []*busv1.Outcome{o}) }

// Answer is Outcome for a command: with an ack, the text goes to the person who gave
// it, in the same commit.
func (b *Bus) Answer(a *Actor, o *busv1.Outcome, text string) {
	b.mu.Lock()
	if l := b.leases[o.GetToken()]; l != nil && l.Extension == a.ID && l.Generation == a.Generation {
		l.answer = text
	}
	b.mu.Unlock()
	b.Outcome(a, o)
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
	b.Commit(Change{Actor: l.sink.actor, Lease: l, Apply: func(tx *Tx) error {
		tx.Ending = true
		if _, err := tx.apply(o.GetEffects(), checked); err != nil {
			return err
		}
		if state == journal.Done && (class == classInput || class == classCommand) && b.hooks.Ack != nil {
			if err := b.hooks.Ack(tx, l.answer); err != nil {
				return err
			}
		}
		return tx.end(l, b.delivery(l), state, o.GetReason(), false)
	}, Done: func(err error) {
		if err != nil {
			b.spawn(func() { b.refused(l, o, err) })
		}
	}})
}

// refused handles an answer that could not be committed.
func (b *Bus) refused(l *Lease, o *busv1.Outcome, err error) {
	b.mu.Lock()
	revoked := l.revoked
	undecided := b.undecided(l, func() { b.refused(l, o, err) })
	b.mu.Unlock()
	if undecided {
		return
	}
	switch sent := l.item.lane.sub.class() == classSend && o.GetKind() == busv1.Outcome_KIND_ACK; {
	case revoked, errors.Is(err, journal.ErrClosed):
	case permanent(err):
		b.bury(l, err.Error())
	case sent && errors.Is(err, contract.ErrConflict):
		b.bury(l, "it was sent, but what should follow from that was refused: "+err.Error())
	case sent: // it must not be sent again only because the store does not take that
		b.log.Error("store that a message was sent: trying again", "event", l.Event.GetId(), "error", err)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.later(func() { b.outcome(l, o) })
	case errors.Is(err, contract.ErrConflict):
		b.mu.Lock()
		l.item.lane.conflicts++
		conflicts := l.item.lane.conflicts
		b.mu.Unlock()
		if conflicts > maxConflicts(l.item.lane.sub) {
			b.failed(l, fmt.Sprintf("%d conflicts in a row: %v", conflicts, err), false)
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

// undecided reports whether a commit that is not durable yet has revoked the token;
// then runs soon, when the outcome is known. The caller holds b.mu.
func (b *Bus) undecided(l *Lease, then func()) bool {
	if !l.revoked || l.released {
		return false
	}
	b.later(then)
	return true
}

// again hands the delivery out later, without counting this attempt.
func (b *Bus) again(l *Lease, after time.Duration, reason string) {
	if b.tooOld(l.item) {
		b.bury(l, l.item.tooOldReason()+"; the last reason was: "+reason)
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
	b.conclude(l, false, func(tx *Tx, _ bool) error {
		d := b.delivery(l)
		if d.Reason, d.NotBefore = reason, tx.Now+after.Microseconds(); !d.Uncertain {
			d.State = journal.Pending // nothing was sent
		}
		return tx.postpone(l, d, after)
	})
}

// failed counts a failure, and hands the delivery out again after a backoff, or
// ends it as dead.
func (b *Bus) failed(l *Lease, reason string, uncertain bool) {
	b.conclude(l, uncertain, func(tx *Tx, silent bool) error { return tx.fail(l, reason, uncertain, silent) })
}

// bury ends a delivery as dead that a handler holds.
func (b *Bus) bury(l *Lease, reason string) {
	b.conclude(l, false, func(tx *Tx, silent bool) error { return tx.end(l, b.delivery(l), journal.Dead, reason, silent) })
}

// conclude commits how an attempt has ended. If the store does not take that, the
// delivery is handed out again; uncertain: it may have had its effect.
func (b *Bus) conclude(l *Lease, uncertain bool, apply func(tx *Tx, silent bool) error) {
	b.commitEnd(l, l.item.Seq, apply, func(err error) {
		if err != nil {
			b.spawn(func() { b.retryLater(l, uncertain, err) })
		}
	})
}

// commitEnd commits the end of a delivery or of an attempt. If the Dead hook's
// changes are refused, it commits the end without the hook: the delivery must end.
func (b *Bus) commitEnd(l *Lease, seq int64, apply func(tx *Tx, silent bool) error, done func(error)) {
	b.Commit(Change{Lease: l, Apply: func(tx *Tx) error { return apply(tx, false) }, Done: func(err error) {
		if !permanent(err) {
			done(err)
			return
		}
		b.log.Error("what follows from a dead delivery was refused: it dies silently", "event", journal.EventID(seq),
			"error", err)
		b.spawn(func() {
			b.Commit(Change{Lease: l, Apply: func(tx *Tx) error { return apply(tx, true) }, Done: done})
		})
	}})
}

// retryLater hands a delivery out again after the store did not take how its
// attempt ended; uncertain: it may have had its effect.
func (b *Bus) retryLater(l *Lease, uncertain bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	uncertain = uncertain || l.taken && !l.answered && l.item.lane.sub.class().marked()
	if uncertain && !l.revoked && !l.item.Uncertain {
		l.item.StartedAt, l.item.Uncertain = l.started, true
	}
	if errors.Is(err, journal.ErrClosed) || b.undecided(l, func() { b.retryLater(l, uncertain, err) }) || l.revoked {
		return
	}
	b.log.Error("store how an attempt ended: repeating the delivery", "event", l.Event.GetId(), "error", err)
	b.requeue(l, time.Second)
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
// durable. silent: no hook follows a death.
func (t *Tx) end(l *Lease, d journal.Delivery, state journal.DeliveryState, reason string, silent bool) error {
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
		return t.died(d, l.Event, l.item.lane.sub.Extension, silent)
	}
	return nil
}

// fail stores a failed attempt.
func (t *Tx) fail(l *Lease, reason string, uncertain, silent bool) error {
	b, sub := t.bus, l.item.lane.sub
	spec := sub.spec.Load()
	d := b.delivery(l)
	d.Attempts++
	d.Reason, d.Uncertain = reason, d.Uncertain || uncertain
	if sub.class().marked() && !d.Uncertain {
		d.State = journal.Pending // it is known that nothing was done
	}
	switch {
	case spec.MaxDeliver > 0 && d.Attempts >= spec.MaxDeliver:
		return t.end(l, d, journal.Dead, fmt.Sprintf("failed %d times; the last time: %s", d.Attempts, reason), silent)
	case spec.Hold && b.visible(sub, d):
		return t.end(l, d, journal.Dead, reasonHeld+": "+reason, silent)
	case b.tooOld(l.item):
		return t.end(l, d, journal.Dead, l.item.tooOldReason()+"; the last time: "+reason, silent)
	}
	b.mu.Lock()
	wait := b.backoff(d.Attempts)
	b.mu.Unlock()
	d.NotBefore = t.Now + wait.Microseconds()
	return t.postpone(l, d, wait)
}

// postpone stores how an attempt ended, and frees the lane when that is durable.
func (t *Tx) postpone(l *Lease, d journal.Delivery, after time.Duration) error {
	if err := t.revoke(l); err != nil {
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
// such an event dies silently.
func (t *Tx) died(d journal.Delivery, e *busv1.Event, extension string, silent bool) error {
	if e.GetTopic() == contract.TopicDeliveryDead {
		return nil
	}
	return t.Following(e, func() error {
		if hook := t.bus.hooks.Dead; hook != nil && !silent {
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
