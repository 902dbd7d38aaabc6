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
	Lease *Lease // the lane being held; nil outside of one
	Now   int64  // Unix microseconds
	// Ending says that the delivery of the lease is settled by this commit.
	Ending bool
	// Answered says that this commit has ended the turn of the lease.
	Answered bool
	// KeepHops says that an agent.output published now does not begin a new count
	// of hops, because no model ran for it.
	KeepHops bool
	// Doubtful says that what is sent now may have been sent before, in a time that
	// a restored store does not know: see Restored.
	Doubtful bool

	bus        *Bus
	cause      *busv1.Event
	valid      bool              // the payloads of its effects are known to be JSON
	quiet      bool              // a death is not told to the router
	dying      bool              // the router is told of one
	attempt    *journal.Delivery // how a failed attempt leaves the delivery that ends
	providerID string            // from a receipt

	added  []added
	gone   []place
	claims []claim
	undo   []func() // under Bus.mu, if it fails or is applied again
	then   []func() // under Bus.mu, once it is durable
	kept   []func() // the same, after what it settled was taken out
	after  []func()
	seen   []*busv1.Event

	sessions map[int64]*journal.Session // as they are now

	// Most commits add one: it lies here.
	firstAdded [1]added
	firstSeen  [1]*busv1.Event
}

// begin makes t a commit that has done nothing yet.
func (t *Tx) begin(b *Bus, a *Actor, j journal.Tx) {
	*t = Tx{Tx: j, Actor: a, bus: b, Now: b.clock.now()}
	t.added, t.seen = t.firstAdded[:0], t.firstSeen[:0]
}

type added struct {
	sub      *subscription
	delivery journal.Delivery
	event    *busv1.Event
	turn     *busv1.TurnContext // of an input that will be handed out at once
}

// place is where a delivery stood that has been settled.
type place struct {
	sub      *subscription
	delivery journal.Delivery
	lease    *Lease // that held it; nil: nobody did
}

// claim is a credit that is kept for a delivery until its commit is durable.
type claim struct {
	sub  *subscription
	sink *Sink
	key  string
}

// claim says whether a delivery that is being accepted will be handed out as
// soon as it is durable.
func (t *Tx) claim(s *subscription, key string) bool {
	b := t.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	k := s.sink
	if k == nil || k.closed || k.paused || s.held || b.closing || k.credit <= k.claimed {
		return false
	}
	switch {
	case key == "" && (s.further || len(s.singles)+k.claimed >= b.windows.loose):
		return false // it will not be kept in memory
	case key != "" && (s.lanes[key] != nil || s.claims[key]):
		return false
	case key != "":
		s.claims[key] = true
	}
	k.claimed++
	t.claims = append(t.claims, claim{s, k, key})
	return true
}

// unclaim gives back what was kept. The caller holds Bus.mu.
func (t *Tx) unclaim() {
	for _, c := range t.claims {
		c.sink.claimed--
		delete(c.sub.claims, c.key)
	}
	t.claims = nil
}

// After runs f once the commit is durable, and not if it fails. f must not
// block.
func (t *Tx) After(f func()) { t.after = append(t.after, f) }

// Cause is the event that what is published now follows from; nil for a root.
func (t *Tx) Cause() *busv1.Event { return t.cause }

// Following applies f with e as the cause of what f publishes.
func (t *Tx) Following(e *busv1.Event, f func() error) error {
	before := t.cause
	t.cause = e
	defer func() { t.cause = before }()
	return f()
}

// Emit accepts an event of the kernel's own, with v as its payload.
func (t *Tx) Emit(topic, key string, v any) (*busv1.Event, error) {
	payload, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("payload of %s: %w", topic, err)
	}
	e := &busv1.Event{Topic: topic, Key: key, Source: contract.KernelSource, Payload: payload}
	_, err = t.Accept(e)
	return e, err
}

// Accept stores the event, creates its deliveries and lets the router follow
// it. Topic, key, source, payload and dedupe key are the caller's. If the
// source used the dedupe key before, it fills e from that event and returns
// true.
func (t *Tx) Accept(e *busv1.Event) (duplicate bool, err error) {
	if e.GetDedupeKey() != "" {
		seq, found, err := t.EventByDedupe(e.GetSource(), e.GetDedupeKey())
		if err != nil {
			return false, err
		}
		if found {
			e.Seq, e.Id = seq, journal.EventID(seq)
			return true, nil
		}
	}
	e.CreatedAtUs = t.Now
	if c := t.cause; c != nil {
		e.CorrelationId, e.CausationId = c.GetCorrelationId(), c.GetId()
		e.Hop = c.GetHop() + 1
		if (e.GetTopic() == contract.TopicAgentOutput || t.turns()) && !t.KeepHops {
			e.Hop = 0
		}
	}
	limit := int32(contract.MaxHops)
	if t.dying {
		limit += hopsOfDeath
	}
	if e.GetHop() > limit {
		return false, fmt.Errorf("%w: %s would be event %d in a row without a turn of a model (the chain began with %s): the limit is %d",
			contract.ErrInvalid, e.GetTopic(), e.GetHop(), e.GetCorrelationId(), limit)
	}
	if err := t.AppendEvent(e); err != nil {
		return false, err
	}
	t.seen = append(t.seen, e)
	for _, s := range t.bus.table.Load().match(e.GetTopic()) {
		if !s.spec.Load().owns(s.Extension, e) {
			continue
		}
		if err := t.deliver(s, e, 0); err != nil {
			return false, err
		}
	}
	return false, t.Following(e, func() error { return t.bus.router.Accept(t, e) })
}

// hopsOfDeath is how many events beyond the limit may tell a person what died
// there.
const hopsOfDeath = 4

func (t *Tx) deliver(s *subscription, e *busv1.Event, rank int64) error {
	d := journal.Delivery{Seq: e.GetSeq(), Subscription: s.ID, Rank: rank}
	if s.spec.Load().Ordered {
		d.Key = e.GetKey()
	}
	a := added{sub: s, event: e}
	d.Uncertain = t.Doubtful && s.class() == classSend
	if s.class() != classPlain && !d.Uncertain && t.claim(s, d.Key) {
		if s.class().marked() {
			d.State, d.StartedAt = journal.InFlight, t.Now
		} else {
			var err error
			if a.turn, err = t.bus.sessions.Context(t, e); err != nil {
				return err
			}
		}
	}
	if err := t.AddDelivery(d); err != nil {
		return err
	}
	if d.Rank == 0 {
		d.Rank = journal.RankOf(d.Seq)
	}
	a.delivery = d
	t.added = append(t.added, a)
	return nil
}

// turns says that what is published now is what a turn or one of its tools
// does: a model has asked for it, and the turns of a chain are bounded.
func (t *Tx) turns() bool {
	return t.Lease != nil && t.Lease.Session != 0 && t.cause == t.Lease.Event
}

// Replace gives the place of a delivery that no handler has taken to another
// event. It returns false when it is too late.
func (t *Tx) Replace(old journal.Delivery, e *busv1.Event) (bool, error) {
	s := t.bus.table.Load().byID[old.Subscription]
	if s == nil || !t.reserve(s, old) {
		return false, nil
	}
	e.CreatedAtUs = t.Now
	if c := t.cause; c != nil {
		e.CorrelationId, e.CausationId, e.Hop = c.GetCorrelationId(), c.GetId(), c.GetHop()+1
	}
	if err := t.AppendEvent(e); err != nil {
		return false, err
	}
	t.seen = append(t.seen, e)
	if err := t.Settle(old, journal.Done, "replaced by "+e.GetId()); err != nil {
		return false, err
	}
	return true, t.deliver(s, e, old.Rank)
}

// Settle ends a delivery that no handler holds.
func (t *Tx) Settle(d journal.Delivery, state journal.DeliveryState, reason string) error {
	d.State, d.Reason, d.SettledAt = state, reason, t.Now
	if err := t.UpdateDelivery(d); err != nil {
		return err
	}
	s := t.bus.table.Load().byID[d.Subscription]
	t.gone = append(t.gone, place{sub: s, delivery: d})
	t.added = slices.DeleteFunc(t.added, func(a added) bool { // this very commit made it
		return a.delivery.Seq == d.Seq && a.delivery.Subscription == d.Subscription
	})
	if s != nil {
		t.bus.mu.Lock()
		defer t.bus.mu.Unlock()
		t.keepBack(s, d)
	}
	return nil
}

// reserve says whether a pending delivery is in nobody's hands. If so, nobody is
// handed it until this commit has settled it, or has come to its end without.
func (t *Tx) reserve(s *subscription, d journal.Delivery) bool {
	t.bus.mu.Lock()
	defer t.bus.mu.Unlock()
	if _, acked := s.acked[d.Seq]; acked {
		return false
	}
	if by := s.ending[d.Seq]; by != nil {
		return by == t
	}
	if l := s.lane(d.Key, d.Seq); l != nil {
		if l.lease != nil && l.lease.item.Seq == d.Seq || l.fetching && len(l.items) > 0 && l.items[0].Seq == d.Seq {
			return false
		}
	}
	t.keepBack(s, d)
	return true
}

// keepBack keeps a delivery from being handed out, although it may be in memory,
// until the commit is durable or has failed. The caller holds Bus.mu.
func (t *Tx) keepBack(s *subscription, d journal.Delivery) {
	if s.ending[d.Seq] == t {
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
	t.kept = append(t.kept, back)
}

// SettleAll ends the deliveries of an agent's input that are not settled. No
// handler holds one: they stand behind the one whose turn they became part of.
func (t *Tx) SettleAll(seq int64, reason string) error {
	ds, err := t.Deliveries(journal.DeliveryFilter{Seq: seq, States: []journal.DeliveryState{journal.Pending, journal.InFlight}})
	if err != nil {
		return err
	}
	for _, d := range ds {
		if s := t.bus.table.Load().byID[d.Subscription]; s == nil || s.class() != classInput {
			continue
		}
		if err := t.Settle(d, journal.Done, reason); err != nil {
			return err
		}
	}
	return nil
}

// TakeBack takes a lane from its holder and settles the delivery that it held,
// which it returns; nil: nobody held it. The holder's token is void in this
// very commit.
func (t *Tx) TakeBack(extension, pattern, key string) (*busv1.Event, error) {
	l := t.takeHolder(extension, pattern, key)
	if l == nil {
		return nil, nil
	}
	d := t.bus.delivery(l)
	d.State, d.Reason, d.StartedAt, d.SettledAt = journal.Done, "cancelled", l.started, t.Now
	if err := t.UpdateDelivery(d); err != nil {
		return nil, err
	}
	t.gone = append(t.gone, place{sub: l.item.lane.sub, delivery: d, lease: l})
	t.then = append(t.then, func() { l.sink.cancel(l) })
	return l.Event, nil
}

// Free says whether a delivery is pending and in nobody's hands.
func (t *Tx) Free(d journal.Delivery) bool {
	s := t.bus.table.Load().byID[d.Subscription]
	current, err := t.Delivery(d.Seq, d.Subscription)
	return s != nil && err == nil && current != nil && (current.State == journal.Pending || current.State == journal.InFlight) && t.reserve(s, d)
}

// Dead keeps an event that the kernel cannot route as a dead letter of its own.
func (t *Tx) Dead(e *busv1.Event, reason string) error {
	s := t.bus.table.Load().unroutable
	d := journal.Delivery{Seq: e.GetSeq(), Subscription: s, State: journal.Dead, Reason: reason, SettledAt: t.Now, Rank: e.GetSeq()}
	known, err := t.Delivery(e.GetSeq(), s)
	if err != nil {
		return err
	}
	if known != nil {
		return t.UpdateDelivery(d)
	}
	return t.AddDelivery(d)
}

// rest tells of the sessions of which this commit has settled inputs.
func (t *Tx) rest() error {
	var told []string
	for i := 0; i < len(t.gone); i++ {
		p := t.gone[i]
		if p.sub == nil || p.sub.class() != classInput || slices.Contains(told, p.delivery.Key) {
			continue
		}
		told = append(told, p.delivery.Key)
		if err := t.bus.sessions.Rested(t, journal.ParseSessionID(p.delivery.Key)); err != nil {
			return err
		}
	}
	return nil
}

// Restored reports whether an event was there before the backup from which the
// store was restored: it may have been answered since that was made.
func (t *Tx) Restored(seq int64) bool { return seq <= t.bus.restored }
