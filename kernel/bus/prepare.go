package bus

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// want is something that dispatching needs of the store. Its lane, if it has
// one, is fetching until it has got it.
type want struct {
	kind   wantKind
	sub    *subscription
	lane   *lane
	item   *item  // the head
	sink   *Sink  // that keeps a credit for it
	reason string // of wantDead

	event  *busv1.Event
	turn   *busv1.TurnContext
	marked bool
	more   []journal.Delivery
}

type wantKind int

const (
	wantHead   wantKind = iota // the event of the head, its turn, or its mark as in flight
	wantUnmark                 // the head was marked as in flight and not handed out
	wantDead                   // the head must not be handed out any more
	wantMore                   // further deliveries of the lane
	wantLoose                  // further deliveries of the subscription that have no order
)

const retryPrepare = time.Second

func (b *Bus) want(w want) {
	if w.kind == wantMore || w.kind == wantLoose {
		if w.sub.reading++; w.sub.gone == nil {
			w.sub.gone = map[int64]struct{}{}
		}
	}
	b.wants = append(b.wants, &w)
	select {
	case b.prepare <- struct{}{}:
	default:
	}
}

// readLoose asks for further deliveries without an order.
func (b *Bus) readLoose(s *subscription) {
	s.refilling, s.missed = true, false
	b.want(want{kind: wantLoose, sub: s})
}

// prepareLoop serves what dispatching needs of the store.
func (b *Bus) prepareLoop(ctx context.Context) {
	for {
		select {
		case <-b.prepare:
		case <-ctx.Done():
			return
		}
		b.mu.Lock()
		wants := b.wants
		b.wants = nil
		b.mu.Unlock()
		if len(wants) == 0 {
			continue
		}
		err := b.serve(ctx, wants)
		if err != nil && len(wants) > 1 {
			// One that cannot be read must not keep the others waiting.
			for _, w := range wants {
				if err := b.serve(ctx, []*want{w}); err != nil {
					b.postpone(w, err)
				}
			}
		} else if err != nil {
			b.postpone(wants[0], err)
		}
	}
}

// postpone tries again later what the store could not do.
func (b *Bus) postpone(w *want, err error) {
	if !errors.Is(err, journal.ErrClosed) && !errors.Is(err, context.Canceled) {
		b.log.Error("preparing a delivery failed; trying again", "subscription", w.sub.Pattern, "extension", w.sub.Extension, "error", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.served(w)
	switch l := w.lane; w.kind {
	case wantLoose:
		w.sub.refilling = false
		b.later(func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if !w.sub.refilling {
				b.readLoose(w.sub)
			}
		})
	case wantUnmark:
		l.fetching = false
		b.offer(l)
		b.later(func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.notHandedOut(l)
		})
	default:
		l.fetching = false
		b.delay(l)
	}
}

// delay offers a lane again after a while.
func (b *Bus) delay(l *lane) {
	l.wake = max(l.wake, b.clock.steady()+retryPrepare.Microseconds())
	b.offer(l)
}

// served gives back what was kept for a want.
func (b *Bus) served(w *want) {
	if w.sink != nil {
		w.sink.claimed--
		w.sink = nil
	}
	if w.kind == wantMore || w.kind == wantLoose {
		if w.sub.reading--; w.sub.reading == 0 {
			w.sub.gone = nil
		}
	}
}

func (b *Bus) serve(ctx context.Context, wants []*want) error {
	if err := b.mark(ctx, wants); err != nil {
		return err
	}
	err := b.store.View(ctx, func(r journal.Reader) error {
		for _, w := range wants {
			if err := b.read(r, w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range slices.Backward(wants) { // each goes to the front
		b.deliverWant(w)
	}
	for _, s := range b.sinks {
		b.dispatch(s)
	}
	for _, w := range wants {
		b.notHandedOut(w.lane)
	}
	return nil
}

// mark writes down that sends and commands are in flight before they are, so
// that a crash is not taken for never having tried; and the contrary for those
// that were not handed out after all.
func (b *Bus) mark(ctx context.Context, wants []*want) error {
	var marks []*want
	for _, w := range wants {
		w.marked = false
		if w.kind == wantUnmark || w.kind == wantHead && w.sub.class().marked() {
			marks = append(marks, w)
		}
	}
	if len(marks) == 0 {
		return nil
	}
	return journal.Do(context.WithoutCancel(ctx), b.store, func(tx journal.Tx) error {
		for _, w := range marks {
			d, err := tx.Delivery(w.item.Seq, w.sub.ID)
			if err != nil {
				return err
			}
			from, to := journal.Pending, journal.InFlight
			if w.kind == wantUnmark {
				from, to = to, from
			}
			w.marked = d != nil && (d.State == from || d.State == to)
			if d == nil || d.State != from {
				continue
			}
			if d.State = to; to == journal.InFlight && !d.Uncertain {
				d.StartedAt = b.clock.now()
			}
			if err := tx.UpdateDelivery(*d); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *Bus) read(r journal.Reader, w *want) (err error) {
	switch w.kind {
	case wantMore:
		w.more, err = r.PendingLane(w.sub.ID, w.lane.key, w.lane.loaded, b.windows.lane+1)
	case wantLoose:
		w.more, err = r.PendingLane(w.sub.ID, "", w.sub.loaded, b.windows.loose/2)
	case wantHead:
		if w.event = w.item.event; w.event == nil {
			if w.event, err = r.Event(w.item.Seq); err != nil {
				return err
			}
		}
		if w.sub.class() == classInput && w.event != nil {
			w.turn, err = b.sessions.Context(r, w.event)
		}
	}
	return err
}

// deliverWant puts in place what was read. The caller holds b.mu.
func (b *Bus) deliverWant(w *want) {
	gone := w.sub.gone
	defer b.served(w)
	l := w.lane
	if w.kind != wantLoose && w.kind != wantDead {
		l.fetching = false
	}
	switch w.kind {
	case wantHead:
		if w.event == nil {
			l.fetching = true
			b.buryItem(w.item, "its event is missing from the store")
			return
		}
		w.item.event, w.item.turn, w.item.created = w.event, w.turn, w.event.GetCreatedAtUs()
		if w.marked {
			w.item.State = journal.InFlight
		} else if w.sub.class().marked() {
			b.remove(w.sub, l.key, w.item.Seq) // it was settled meanwhile
		}
		b.offerFirst(l)
	case wantUnmark:
		if w.marked {
			w.item.State = journal.Pending
		}
		b.offerFirst(l)
	case wantDead:
		b.buryItem(w.item, w.reason)
	case wantMore:
		b.refill(l, w.more, gone)
	case wantLoose:
		b.refillLoose(w.sub, w.more, gone)
	}
}

func (b *Bus) refill(l *lane, ds []journal.Delivery, gone map[int64]struct{}) {
	l.further = l.missed || len(ds) > b.windows.lane
	l.missed = false
	for _, d := range ds[:min(len(ds), b.windows.lane)] {
		l.loaded = max(l.loaded, d.Rank)
		if _, settled := gone[d.Seq]; !settled {
			l.items = append(l.items, &item{Delivery: asFound(d), lane: l})
		}
	}
	if len(l.items) == 0 && !l.further {
		l.sub.forget(l)
		return
	}
	b.offerFirst(l)
}

func (b *Bus) refillLoose(s *subscription, ds []journal.Delivery, gone map[int64]struct{}) {
	s.refilling = false
	s.further = s.missed || len(ds) == b.windows.loose/2
	for _, d := range ds {
		s.loaded = max(s.loaded, d.Rank)
		if _, settled := gone[d.Seq]; !settled && s.singles[d.Seq] == nil {
			b.addSingle(added{sub: s, delivery: asFound(d)})
		}
	}
	if s.further && len(s.singles) <= b.windows.loose/8 {
		b.readLoose(s)
	}
}

// asFound is a delivery as the store has it, while memory knew nothing of it: a
// send that is in flight there may have reached its platform.
func asFound(d journal.Delivery) journal.Delivery {
	d.Uncertain = d.Uncertain || d.State == journal.InFlight
	return d
}

// notHandedOut takes back what was done for the head of a lane to be handed out
// now, if it was not. The caller holds b.mu and has dispatched.
func (b *Bus) notHandedOut(l *lane) {
	if l == nil || l.lease != nil || l.fetching || len(l.items) == 0 {
		return
	}
	it := l.items[0]
	it.turn = nil // it may change until then
	if l.sub.class().marked() && it.State == journal.InFlight && !it.Uncertain && !b.closing {
		l.fetching = true
		b.want(want{kind: wantUnmark, sub: l.sub, lane: l, item: it})
	}
}
