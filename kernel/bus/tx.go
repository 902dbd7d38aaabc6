package bus

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Tx is one commit while it is applied: the journal's transaction, who commits,
// and what the bus has to do once it is durable.
type Tx struct {
	journal.Tx
	Actor *Actor
	Lease *Lease // the commit is made under it; nil: under none
	Now   int64  // Unix microseconds
	// Ending is true in a commit that settles the delivery of the lease.
	Ending bool
	// Answered is true once this commit has ended the turn of the lease.
	Answered bool

	bus        *Bus
	cause      *busv1.Event
	moreHops   int32  // beyond the limit, for what tells of a death
	accepted   bool   // an event, at least
	silent     bool   // the Dead hook does not follow a death
	providerID string // from a receipt

	added   []added
	settled []settled
	undo    []func() // under Bus.mu, if it fails or is applied again
	then    []func() // under Bus.mu, once it is durable
	after   []func()

	// Most commits accept one event with one delivery: they need no more room.
	firstAdded [1]added
}

// begin makes t a commit that has done nothing yet.
func (t *Tx) begin(b *Bus, a *Actor, j journal.Tx) {
	*t = Tx{Tx: j, Actor: a, bus: b, Now: b.clock.Now()}
	t.added = t.firstAdded[:0]
}

// added is a delivery that a commit creates, or queues again.
type added struct {
	sub      *subscription
	delivery journal.Delivery
	event    *busv1.Event
	turn     *busv1.TurnContext // of an input that is handed out at once
	sink     *Sink              // it keeps a credit for the delivery; nil: it does not
}

// settled is a delivery that a commit ends.
type settled struct {
	sub      *subscription
	delivery journal.Delivery
	lease    *Lease // of its handler; nil: none held it
}

// After runs f once the commit is durable, and not if it fails. f must not
// block.
func (t *Tx) After(f func()) { t.after = append(t.after, f) }

// Cause returns the event that causes what is published now; nil for a root.
func (t *Tx) Cause() *busv1.Event { return t.cause }

// Following applies f with e as the cause of what f publishes.
func (t *Tx) Following(e *busv1.Event, f func() error) error {
	before := t.cause
	t.cause = e
	defer func() { t.cause = before }()
	return f()
}

// Emit accepts an event of the kernel's own, with v as its payload.
func (t *Tx) Emit(topic, key string, v any, options ...Option) (*busv1.Event, error) {
	payload, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("payload of %s: %w", topic, err)
	}
	e := &busv1.Event{Topic: topic, Key: key, Source: contract.KernelSource, Payload: payload}
	_, err = t.Accept(e, options...)
	return e, err
}

// Replace replaces the event of a delivery that no handler has taken by another
// one. It returns false when it is too late.
func (t *Tx) Replace(old journal.Delivery, e *busv1.Event) (bool, error) {
	s := t.bus.table.Load().byID[old.Subscription]
	if s == nil || !t.reserve(s, old) {
		return false, nil
	}
	if err := t.append(e, false); err != nil {
		return false, err
	}
	if err := t.Settle(old, journal.Done, "replaced by "+e.GetId()); err != nil {
		return false, err
	}
	return true, t.deliver(s, e, journal.Delivery{Rank: old.Rank})
}

// unsettled are the states of a delivery that has not ended.
var unsettled = []journal.DeliveryState{journal.Pending, journal.InFlight}

// Settle ends a delivery. A handler that holds it by then loses its token, as with
// TakeBack.
func (t *Tx) Settle(d journal.Delivery, state journal.DeliveryState, reason string) error {
	d.State, d.Reason, d.SettledAt = state, reason, t.Now
	if err := t.UpdateDelivery(d); err != nil {
		return err
	}
	s := t.bus.table.Load().byID[d.Subscription]
	t.bus.mu.Lock()
	defer t.bus.mu.Unlock()
	t.settled = append(t.settled, settled{sub: s, delivery: d, lease: t.take(s.leaseOf(d.Key, d.Seq))})
	t.added = slices.DeleteFunc(t.added, func(a added) bool { // this very commit created it
		same := a.delivery.Seq == d.Seq && a.sub == s
		if same {
			a.returnCredit()
		}
		return same
	})
	if s != nil {
		t.keepBack(s, d)
	}
	return nil
}

// reserve reports whether no handler has a pending delivery. If so, it is not handed
// out before this commit has ended.
func (t *Tx) reserve(s *subscription, d journal.Delivery) bool {
	t.bus.mu.Lock()
	defer t.bus.mu.Unlock()
	if by := s.ending[d.Seq]; by != nil {
		return by == t
	}
	if l := s.lane(d.Key, d.Seq); l != nil {
		if s.leaseOf(d.Key, d.Seq) != nil || l.fetching && len(l.items) > 0 && l.items[0].Seq == d.Seq {
			return false
		}
	}
	t.keepBack(s, d)
	return true
}

// keepBack keeps a delivery from being handed out until the commit is durable or
// has failed. The caller holds Bus.mu.
func (t *Tx) keepBack(s *subscription, d journal.Delivery) {
	if by := s.ending[d.Seq]; by == t || by == acked {
		return
	}
	s.ending[d.Seq] = t
	back := func() {
		if s.ending[d.Seq] != t {
			return // it is settled
		}
		delete(s.ending, d.Seq)
		if l := s.lane(d.Key, d.Seq); l != nil {
			t.bus.offer(l)
			t.bus.dispatch(s.sink)
		}
	}
	t.undo = append(t.undo, back)
	t.then = append(t.then, back)
}

// SettleAll settles the delivery of an agent's input.
func (t *Tx) SettleAll(seq int64, state journal.DeliveryState, reason string) error {
	ds, err := t.Deliveries(journal.DeliveryFilter{Seq: seq, States: unsettled})
	if err != nil {
		return err
	}
	for _, d := range ds {
		if s := t.bus.table.Load().byID[d.Subscription]; s == nil || s.class() != classInput {
			continue
		}
		if err := t.Settle(d, state, reason); err != nil {
			return err
		}
	}
	return nil
}

// TakeBack takes a lane from its holder and settles the delivery that it held. It
// returns the event; nil: no handler held the lane. The token is revoked from this
// commit on.
func (t *Tx) TakeBack(extension, pattern, key string) (*busv1.Event, error) {
	b := t.bus
	b.mu.Lock()
	l := b.table.Load().named(extension, pattern).holder(key)
	b.mu.Unlock()
	if l == nil {
		return nil, nil
	}
	d := b.delivery(l)
	d.StartedAt = l.started
	return l.Event, t.Settle(d, journal.Done, "cancelled")
}

// Free reports whether a delivery is pending and no handler has it.
func (t *Tx) Free(d journal.Delivery) bool {
	s := t.bus.table.Load().byID[d.Subscription]
	current, err := t.Delivery(d.Seq, d.Subscription)
	return s != nil && err == nil && current != nil && slices.Contains(unsettled, current.State) && t.reserve(s, d)
}

// Dead keeps an event that the kernel cannot route as a dead letter of its own.
func (t *Tx) Dead(e *busv1.Event, reason string) error {
	s := t.bus.table.Load().unroutable
	d := journal.Delivery{Seq: e.GetSeq(), Subscription: s, State: journal.Dead, Reason: reason, Rank: e.GetSeq()}
	d.SettledAt = t.Now
	known, err := t.Delivery(e.GetSeq(), s)
	if err != nil {
		return err
	}
	if known != nil {
		return t.UpdateDelivery(d)
	}
	return t.AddDelivery(d)
}

// Restored reports whether an event was there before the backup from which the
// store was restored: it may have been answered since that was made.
func (t *Tx) Restored(seq int64) bool { return seq <= t.bus.restored }
