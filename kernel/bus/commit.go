package bus

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/effect"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// This file follows a commit from top to bottom: it is queued, applied on the
// writer of the store (effects, the events that they publish, the deliveries of
// those, and what the hooks add), becomes durable, and is then followed in memory.

// Change is one commit of the kernel's own.
type Change struct {
	Actor *Actor // in whose name; nil: the kernel itself
	Lease *Lease // must still be valid; its event is the cause of what is published
	// Lazy lets the change wait for the next commit, before any that is submitted
	// later. It is for counters, not for state that decides something: a crash
	// within journal.LazyDelay loses the change.
	Lazy   bool
	silent bool // the Dead hook does not follow a death
	// Apply makes the change. It may run more than once: the last run counts.
	Apply func(*Tx) error
	// Done gets the outcome, once it is durable or has failed. It must not block.
	Done func(error)
}

// Commit queues a change.
func (b *Bus) Commit(c Change) {
	u := &update{bus: b, actor: c.Actor, done: c.Done}
	u.actor = cmp.Or(u.actor, Kernel)
	u.parts = u.first[:]
	u.parts[0].apply, u.parts[0].lease, u.parts[0].silent = c.Apply, c.Lease, c.silent
	b.store.Submit(journal.Update{Lazy: c.Lazy, Apply: u.applyOne, Undo: u.undo, Done: u.settled})
}

// Do commits a change of the kernel itself and waits until it is durable.
func (b *Bus) Do(apply func(*Tx) error) error { return b.DoAs(Kernel, nil, apply) }

// DoAs commits a change in the name of an actor, under a lease, and waits until
// it is durable.
func (b *Bus) DoAs(a *Actor, l *Lease, apply func(*Tx) error) error {
	if a != Kernel {
		b.share.Note(a.ID)
	}
	done := make(chan error, 1)
	b.Commit(Change{Actor: a, Lease: l, Apply: apply, Done: func(err error) { done <- err }})
	return <-done
}

// Submit queues commits of an extension, each atomic by itself, and waits while
// more than its share is queued. done gets the receipts, in the order of
// submission, of one or several commits at a time; it must not block.
func (b *Bus) Submit(a *Actor, commits []*busv1.Commit, done func([]*busv1.CommitReceipt)) {
	for len(commits) > 0 {
		n, size := b.share.Enter(a.ID, len(commits), func(i int) int { return effect.Size(commits[i]) })
		u := &update{bus: b, actor: a, size: size, receipts: done}
		if u.parts = u.first[:]; n > 1 {
			u.parts = make([]part, n)
		}
		for i, c := range commits[:n] {
			u.parts[i].commit, u.parts[i].checked = c, b.effects.check(c.GetEffects())
		}
		b.store.Submit(journal.Update{Apply: u.applyEach, Undo: u.undo, Done: u.settled})
		commits = commits[n:]
	}
}

// update is one update of the journal: a change, or commits of an extension that
// came together, which saves what each update costs.
type update struct {
	bus      *Bus
	actor    *Actor
	parts    []part
	first    [1]part                      // room for one
	done     func(error)                  // of a change
	receipts func([]*busv1.CommitReceipt) // of commits
	size     int                          // of commits

	applied, written time.Time
}

// part is a change, or one of the commits.
type part struct {
	tx      Tx
	err     error
	apply   func(*Tx) error // of a change
	lease   *Lease
	silent  bool
	commit  *busv1.Commit
	checked bool // its effects have passed their checks
	receipt busv1.CommitReceipt
}

func (u *update) applyOne(j journal.Tx) error { return u.apply(j, &u.parts[0]) }

func (u *update) applyEach(j journal.Tx) error {
	u.applied = time.Now()
	for i := range u.parts {
		p := &u.parts[i]
		if p.err = j.Part(func() error { return u.apply(j, p) }); p.err != nil {
			u.bus.rollback(&p.tx)
		}
	}
	u.written = time.Now()
	return nil
}

// apply applies one part. A commit whose id is known gets its first receipt.
func (u *update) apply(j journal.Tx, p *part) error {
	tx := &p.tx
	tx.begin(u.bus, u.actor, j)
	tx.silent = p.silent
	id := p.commit.GetId()
	if p.receipt = (busv1.CommitReceipt{}); id != "" {
		stored, found, err := tx.CommitReceipt(u.actor.ID, id)
		if err == nil && found {
			err = proto.Unmarshal(stored, &p.receipt)
		}
		if err != nil || found {
			return err
		}
	}
	if token := p.commit.GetLane(); token != "" {
		var err error
		if p.lease, err = u.bus.Lease(u.actor, token); err != nil {
			return err
		}
	}
	if p.lease != nil {
		if err := tx.hold(p.lease); err != nil {
			return err
		}
	}
	if p.commit == nil {
		if err := p.apply(tx); err != nil {
			return err
		}
	} else {
		results, err := tx.apply(p.commit.GetEffects(), p.checked)
		if err != nil {
			return err
		}
		p.receipt.Results = results
	}
	if id != "" {
		stored, err := proto.Marshal(&p.receipt)
		if err == nil {
			err = tx.PutCommitReceipt(u.actor.ID, id, stored)
		}
		if err != nil {
			return err
		}
	}
	return tx.rest()
}

// hold makes t a commit under the lease, if that is still valid.
func (t *Tx) hold(l *Lease) error {
	t.bus.mu.Lock()
	revoked := l.revoked
	t.bus.mu.Unlock()
	if revoked {
		return errTaken
	}
	t.Lease, t.cause = l, l.Event
	if l.Call == 0 {
		return nil
	}
	c, err := t.Call(l.Call)
	if err == nil && (c == nil || c.State == journal.CallFinished || c.State == journal.CallClosed) {
		err = fmt.Errorf("%w: the call %s has ended", contract.ErrStale, journal.CallID(l.Call))
	}
	return err
}

// Option says something about an event that is accepted.
type Option int

const (
	// PossiblySent marks the accepted sends as possibly sent before, after the backup
	// that the store was restored from: see Restored.
	PossiblySent Option = iota + 1
	// KeepHops keeps the count of hops for an agent.output that no model produced.
	KeepHops
)

// Accept stores the event, creates its deliveries and routes it, if the Accept hook
// does not refuse it. Topic, key, source, payload and dedupe key are the caller's. If
// the source used the dedupe key before, it fills e from that event and returns true.
// An event that was refused has no id.
func (t *Tx) Accept(e *busv1.Event, options ...Option) (duplicate bool, err error) {
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
	route, err := t.route(e)
	if err != nil || route == nil {
		return false, err
	}
	byModel := e.GetTopic() == contract.TopicAgentOutput || t.inTurn()
	if err := t.append(e, byModel && !slices.Contains(options, KeepHops)); err != nil {
		return false, err
	}
	for _, s := range t.bus.table.Load().match(e.GetTopic()) {
		if !s.spec.Load().owns(s.Extension, e) {
			continue
		}
		uncertain := s.class() == classSend && slices.Contains(options, PossiblySent)
		if err := t.deliver(s, e, journal.Delivery{Uncertain: uncertain}); err != nil {
			return false, err
		}
	}
	return false, t.Following(e, route)
}

// NoRoute is the route of an event without consequences.
func NoRoute() error { return nil }

func (t *Tx) route(e *busv1.Event) (func() error, error) {
	if t.bus.hooks.Accept == nil {
		return NoRoute, nil
	}
	return t.bus.hooks.Accept(t, e)
}

// inTurn reports whether a turn or one of its tools publishes now: a model has
// asked for it, and the turns of a chain are bounded.
func (t *Tx) inTurn() bool {
	return t.Lease != nil && t.Lease.Session != 0 && t.cause == t.Lease.Event
}

// append stores an event with its time, and its place in the chain of events.
func (t *Tx) append(e *busv1.Event, byModel bool) error {
	e.CreatedAtUs = t.Now
	if c := t.cause; c != nil {
		e.CorrelationId, e.CausationId, e.Hop = c.GetCorrelationId(), c.GetId(), c.GetHop()+1
		if byModel {
			e.Hop = 0
		}
	}
	limit := contract.MaxHops + t.moreHops
	if strings.HasPrefix(t.cause.GetTopic(), contract.TopicChannelSend) {
		limit += hopsOfDeath // what was sent cannot be taken back: it is noted
	}
	if e.GetHop() > limit {
		const text = "%w: %s would be event %d in a row without a turn of a model (the chain began with %s): the limit is %d"
		return fmt.Errorf(text, contract.ErrInvalid, e.GetTopic(), e.GetHop(), e.GetCorrelationId(), limit)
	}
	if err := t.AppendEvent(e); err != nil {
		return err
	}
	t.accepted = true
	return nil
}

// deliver creates the delivery d of an event for a subscription. If it can be
// handed out as soon as it is durable, this commit already does for it what the
// prepare loop would do in one of its own.
func (t *Tx) deliver(s *subscription, e *busv1.Event, d journal.Delivery) (err error) {
	d.Seq, d.Subscription = e.GetSeq(), s.ID
	if s.spec.Load().Ordered {
		d.Key = e.GetKey()
	}
	t.added = append(t.added, added{sub: s, event: e})
	a := &t.added[len(t.added)-1]
	if s.class() != classPlain && !d.Uncertain && t.reserveCredit(a, d.Key) {
		if s.class().marked() {
			d.State, d.StartedAt = journal.InFlight, t.Now
		} else if a.turn, err = t.bus.hooks.Turn(t, e); err != nil {
			return err
		}
	}
	if err := t.AddDelivery(d); err != nil {
		return err
	}
	if d.Rank == 0 {
		d.Rank = journal.RankOf(d.Seq)
	}
	a.delivery = d
	return nil
}

// reserveCredit reports whether a delivery that is accepted can be handed out as
// soon as it is durable. If so, it keeps a credit of its sink for that, and starts the
// lane.
func (t *Tx) reserveCredit(a *added, key string) bool {
	b, s := t.bus, a.sub
	b.mu.Lock()
	defer b.mu.Unlock()
	k := s.sink
	if k == nil || k.closed || k.paused || s.held || b.closing || k.credit <= k.reserved {
		return false
	}
	switch {
	case key == "" && (s.loose.further || s.singles+k.reserved >= b.windows.loose):
		return false // it will not be kept in memory
	case key != "" && s.lane(key, 0) != nil:
		return false
	case key != "":
		s.lanes[laneKey{key: key}] = newLane(s, key)
	}
	k.reserved++
	a.sink, a.delivery.Key = k, key
	return true
}

// returnCredit undoes reserveCredit. The caller holds Bus.mu.
func (a *added) returnCredit() {
	if a.sink != nil {
		a.sink.reserved--
		a.sink = nil
		if l := a.sub.lane(a.delivery.Key, a.delivery.Seq); l != nil {
			a.sub.forget(l, a.delivery.Seq)
		}
	}
}

// rest runs the Rest hook for the sessions of which this commit has settled
// inputs.
func (t *Tx) rest() error {
	var done []string
	for i := 0; i < len(t.settled) && t.bus.hooks.Rest != nil; i++ { // a hook may settle more
		p := t.settled[i]
		if p.sub == nil || p.sub.class() != classInput || slices.Contains(done, p.delivery.Key) {
			continue
		}
		done = append(done, p.delivery.Key)
		if err := t.bus.hooks.Rest(t, journal.ParseSessionID(p.delivery.Key)); err != nil {
			return err
		}
	}
	return nil
}

// undo rolls back the parts that were applied.
func (u *update) undo() {
	for i := range slices.Backward(u.parts) {
		if p := &u.parts[i]; p.err == nil {
			u.bus.rollback(&p.tx)
		}
	}
}

// rollback undoes the changes to the bus of a commit that failed.
func (b *Bus) rollback(t *Tx) {
	if len(t.undo) == 0 && len(t.added) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range t.added {
		t.added[i].returnCredit()
	}
	for _, f := range slices.Backward(t.undo) {
		f()
	}
	t.added, t.undo = nil, nil
}

// settled follows an update that is durable or has failed.
func (u *update) settled(err error) {
	if errors.Is(err, journal.ErrFenced) && u.bus.fenced != nil {
		u.bus.fenced(err)
	}
	if u.done != nil {
		if err == nil {
			u.bus.committed(u.parts)
		}
		u.done(err)
		return
	}
	var applying, writing time.Duration
	if !u.written.IsZero() {
		applying, writing = u.written.Sub(u.applied), time.Since(u.written)
	}
	u.bus.share.Leave(u.actor.ID, len(u.parts), u.size, applying, writing)
	receipts := make([]*busv1.CommitReceipt, len(u.parts))
	for i := range u.parts {
		p := &u.parts[i]
		p.err = cmp.Or(p.err, err)
		if receipts[i] = &p.receipt; p.err != nil {
			receipts[i] = &busv1.CommitReceipt{Error: contract.ToProto(p.err)}
		}
	}
	u.bus.committed(u.parts)
	u.receipts(receipts)
}

// committed follows durable commits in memory, hands out what has become ready,
// and tells who follows the events. Parts that failed are left out.
func (b *Bus) committed(parts []part) {
	var sinks []*Sink
	touch := func(s *subscription) {
		if s != nil && s.sink != nil && !slices.Contains(sinks, s.sink) {
			sinks = append(sinks, s.sink)
		}
	}
	b.mu.Lock()
	for i := range parts {
		if t := &parts[i].tx; parts[i].err == nil {
			b.follow(t)
			for _, p := range t.settled {
				touch(p.sub)
			}
			for _, a := range t.added {
				touch(a.sub)
			}
		}
	}
	for _, s := range sinks {
		b.dispatch(s)
	}
	for i := range parts {
		if parts[i].err != nil {
			continue
		}
		for _, a := range parts[i].tx.added {
			if a.sub.class() != classPlain {
				b.notHandedOut(a.sub.lane(a.delivery.Key, a.delivery.Seq))
			}
		}
		if parts[i].tx.accepted {
			b.tellNews()
		}
	}
	b.mu.Unlock()
	for i := range parts {
		if parts[i].err == nil {
			for _, f := range parts[i].tx.after {
				f()
			}
		}
	}
}

// follow brings memory to where a durable commit has brought the store. The
// caller holds b.mu.
func (b *Bus) follow(t *Tx) {
	for _, p := range t.settled {
		if p.lease != nil {
			b.release(p.lease)
		}
		b.remove(p.sub, p.delivery.Key, p.delivery.Seq)
		b.reportSettled(p.delivery)
	}
	for _, f := range t.then {
		f()
	}
	for i := range t.added {
		b.add(t.added[i])
		t.added[i].returnCredit()
	}
}
