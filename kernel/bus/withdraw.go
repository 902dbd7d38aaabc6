package bus

import (
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// InputDedupe is the dedupe key of an input that an extension has queued: the
// event's source is the kernel.
func InputDedupe(extension, key string) string { return extension + ":" + key }

// OwnInput is the key under which an extension had queued an input; empty: it
// had not, or without one.
func OwnInput(extension string, e *busv1.Event) string {
	key, own := strings.CutPrefix(e.GetDedupeKey(), InputDedupe(extension, ""))
	if own && e.GetSource() == contract.KernelSource {
		return key
	}
	return ""
}

func (t *Tx) withdrawEffect(effect *busv1.Effect) (*busv1.EffectResult, error) {
	w := effect.GetWithdraw()
	seq, own := journal.ParseEventID(w.GetEventId()), false
	if w.GetDedupeKey() != "" {
		var err error
		if seq, own, err = t.EventByDedupe(t.Actor.ID, w.GetDedupeKey()); err == nil && !own {
			seq, own, err = t.EventByDedupe(contract.KernelSource, InputDedupe(t.Actor.ID, w.GetDedupeKey()))
		}
		if err != nil || !own {
			return nil, err // never published: nothing to withdraw
		}
	}
	e, err := t.Event(seq)
	if err != nil {
		return nil, err
	}
	if e == nil || !own && e.GetSource() != t.Actor.ID {
		return nil, fmt.Errorf("%w: %q did not publish event %q", contract.ErrNotFound, t.Actor.ID, w.GetEventId())
	}
	inTime, err := t.Withdraw(e)
	return &busv1.EffectResult{EventId: e.GetId(), TooLate: !inTime}, err
}

// Withdrawal is how an event is withdrawn.
type Withdrawal int

// An event is withdrawn by settling its deliveries that no handler has taken, was
// withdrawn by the hook, or cannot be withdrawn any more.
const (
	WithdrawPending Withdrawal = iota
	WithdrawDone
	WithdrawTooLate
)

const reasonWithdrawn = "withdrawn"

// Withdraw settles the deliveries of the event, and of what the Accept hook made
// of it, that no handler has taken. It returns false if one was taken.
func (t *Tx) Withdraw(e *busv1.Event) (inTime bool, err error) { return t.withdraw(e, 0) }

func (t *Tx) withdraw(e *busv1.Event, depth int) (inTime bool, err error) {
	if t.bus.hooks.Withdraw != nil {
		if how, err := t.bus.hooks.Withdraw(t, e); err != nil || how != WithdrawPending {
			return how == WithdrawDone, err
		}
	}
	if inTime, err = t.WithdrawDeliveries(e.GetSeq()); err != nil {
		return false, err
	}
	if depth > 3 {
		return inTime, nil
	}
	// What the hook derived follows its cause directly.
	derived, err := t.Events(journal.EventFilter{After: e.GetSeq(), Limit: 64, Ascending: true})
	if err != nil {
		return false, err
	}
	for _, after := range derived {
		if after.GetSource() != contract.KernelSource || after.GetCausationId() != e.GetId() {
			continue
		}
		ok, err := t.withdraw(after, depth+1)
		if err != nil {
			return false, err
		}
		inTime = inTime && ok
	}
	return inTime, nil
}

// WithdrawDeliveries settles the deliveries of an event that no handler has taken, and
// reports whether none was taken.
func (t *Tx) WithdrawDeliveries(seq int64) (inTime bool, err error) {
	ds, err := t.Deliveries(journal.DeliveryFilter{Seq: seq})
	if err != nil {
		return false, err
	}
	inTime = true
	for _, d := range ds {
		switch s := t.bus.table.Load().byID[d.Subscription]; {
		case d.State == journal.Dead, d.State == journal.Done && d.Reason == reasonWithdrawn:
		case d.State == journal.Done, s == nil, !t.reserve(s, d):
			inTime = false
		default:
			if err := t.Settle(d, journal.Done, reasonWithdrawn); err != nil {
				return false, err
			}
		}
	}
	return inTime, nil
}
