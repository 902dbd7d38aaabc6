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
	if key, own := strings.CutPrefix(e.GetDedupeKey(), InputDedupe(extension, "")); own && e.GetSource() == contract.KernelSource {
		return key
	}
	return ""
}

func (t *Tx) withdrawEffect(w *busv1.Withdraw) (*busv1.EffectResult, error) {
	seq, own := journal.ParseEventID(w.GetEventId()), false
	if w.GetDedupeKey() != "" {
		var err error
		if seq, own, err = t.EventByDedupe(t.Actor.ID, w.GetDedupeKey()); err == nil && !own {
			seq, own, err = t.EventByDedupe(contract.KernelSource, InputDedupe(t.Actor.ID, w.GetDedupeKey()))
		}
		if err != nil || !own {
			return &busv1.EffectResult{}, err // never published: nothing to withdraw
		}
	}
	e, err := t.Event(seq)
	if err != nil {
		return nil, err
	}
	if e == nil || !own && e.GetSource() != t.Actor.ID {
		return nil, fmt.Errorf("%w: %q did not publish event %q", contract.ErrNotFound, t.Actor.ID, w.GetEventId())
	}
	withdraw := t.Withdraw
	if e.GetTopic() == contract.TopicUserAsk {
		withdraw = func(int64) (bool, error) { return t.bus.router.Unask(t, e) }
	}
	inTime, err := withdraw(seq)
	return &busv1.EffectResult{EventId: e.GetId(), TooLate: !inTime}, err
}

const reasonWithdrawn = "withdrawn"

// Withdraw settles the deliveries of the event, and of what the router made of
// it, that no handler has taken. It returns false if one was taken.
func (t *Tx) Withdraw(seq int64) (inTime bool, err error) {
	return t.withdraw(seq, 0)
}

func (t *Tx) withdraw(seq int64, depth int) (inTime bool, err error) {
	inTime = true
	ds, err := t.Deliveries(journal.DeliveryFilter{Seq: seq})
	if err != nil {
		return false, err
	}
	for _, d := range ds {
		switch {
		case d.State == journal.Dead:
		case d.State == journal.Done && d.Reason == reasonWithdrawn:
		case d.State == journal.Done:
			inTime = false
		default:
			s := t.bus.table.Load().byID[d.Subscription]
			begun, err := t.begun(s, d)
			if err != nil {
				return false, err
			}
			if s == nil || begun || !t.reserve(s, d) {
				inTime = false
				continue
			}
			if err := t.Settle(d, journal.Done, reasonWithdrawn); err != nil {
				return false, err
			}
		}
	}
	if depth > 3 {
		return inTime, nil
	}
	// What the router derived stands directly behind its cause.
	derived, err := t.Events(journal.EventFilter{After: seq, Limit: 64, Ascending: true})
	if err != nil {
		return false, err
	}
	for _, e := range derived {
		if e.GetSource() != contract.KernelSource || e.GetCausationId() != journal.EventID(seq) {
			continue
		}
		ok, err := t.withdraw(e.GetSeq(), depth+1)
		if err != nil {
			return false, err
		}
		inTime = inTime && ok
	}
	return inTime, nil
}

// begun reports whether a delivery is an input that a running turn is about,
// though its lane has not come to it.
func (t *Tx) begun(s *subscription, d journal.Delivery) (bool, error) {
	if s == nil || s.class() != classInput {
		return false, nil
	}
	e, err := t.Event(d.Seq)
	if err != nil || e == nil {
		return false, err
	}
	return t.bus.sessions.Begun(t, e)
}
