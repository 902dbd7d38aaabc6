package bus

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// fetch is something that handing out needs of the store. Its lane, if it has
// one, is fetching until the prepare loop has done it.
type fetch struct {
	kind fetchKind
	sub  *subscription
	lane *lane
	item *item // the head
	sink *Sink // that keeps a credit for it

	event  *busv1.Event
	turn   *busv1.TurnContext
	marked bool
	more   []journal.Delivery
}

type fetchKind int

const (
	fetchHead   fetchKind = iota // the event of the head, its turn, or its mark as in flight
	fetchUnmark                  // the head was marked as in flight, and not handed out
	fetchMore                    // further deliveries of the lane
	fetchLoose                   // further deliveries of the subscription that have no order
)

const retryPrepare = time.Second

func (b *Bus) fetch(f fetch) {
	if f.kind == fetchMore || f.kind == fetchLoose {
		if f.sub.reading++; f.sub.gone == nil {
			f.sub.gone = map[int64]struct{}{}
		}
	}
	b.fetches = append(b.fetches, &f)
	select {
	case b.prepare <- struct{}{}:
	default:
	}
}

// readLoose fetches further deliveries without an order.
func (b *Bus) readLoose(s *subscription) {
	s.refilling, s.missed = true, false
	b.fetch(fetch{kind: fetchLoose, sub: s})
}

// prepareLoop does the fetches. One that fails must not delay the others.
func (b *Bus) prepareLoop(ctx context.Context) {
	for {
		select {
		case <-b.prepare:
		case <-ctx.Done():
			return
		}
		b.mu.Lock()
		fetches := b.fetches
		b.fetches = nil
		b.mu.Unlock()
		if len(fetches) > 1 && b.serve(ctx, fetches) == nil {
			continue
		}
		for _, f := range fetches {
			if err := b.serve(ctx, []*fetch{f}); err != nil {
				b.fetchAgain(f, err)
			}
		}
	}
}

// fetchAgain tries again later what the store could not do.
func (b *Bus) fetchAgain(f *fetch, err error) {
	if !errors.Is(err, journal.ErrClosed) && !errors.Is(err, context.Canceled) {
		b.log.Error("prepare a delivery: trying again", "subscription", f.sub.Pattern, "extension", f.sub.Extension,
			"error", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fetched(f)
	switch f.kind {
	case fetchLoose:
		b.later(func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if !f.sub.refilling {
				b.readLoose(f.sub)
			}
		})
	case fetchUnmark:
		b.offer(f.lane)
		b.later(func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.notHandedOut(f.lane)
		})
	default:
		b.delay(f.lane)
	}
}

// delay offers a lane again after a while.
func (b *Bus) delay(l *lane) {
	l.wake = max(l.wake, b.clock.Steady()+retryPrepare.Microseconds())
	b.offer(l)
}

// fetched ends a fetch, and returns its credit.
func (b *Bus) fetched(f *fetch) {
	if f.sink != nil {
		f.sink.reserved--
		f.sink = nil
	}
	if f.lane != nil {
		f.lane.fetching = false
	} else {
		f.sub.refilling = false
	}
	if f.kind == fetchMore || f.kind == fetchLoose {
		if f.sub.reading--; f.sub.reading == 0 {
			f.sub.gone = nil
		}
	}
}

// serve does fetches: it marks deliveries, reads them into memory and hands them
// out.
func (b *Bus) serve(ctx context.Context, fetches []*fetch) error {
	if err := b.mark(ctx, fetches); err != nil {
		return err
	}
	err := b.store.View(ctx, func(r journal.Reader) error {
		for _, f := range fetches {
			if err := b.read(r, f); err != nil {
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
	for _, f := range slices.Backward(fetches) { // each goes to the front
		b.place(f)
	}
	for _, s := range b.sinks {
		b.dispatch(s)
	}
	for _, f := range fetches {
		b.notHandedOut(f.lane)
	}
	return nil
}

// mark stores that sends and commands are in flight before they are, so that a
// crash is not taken for never having tried; and the opposite for those that
// were not handed out after all.
func (b *Bus) mark(ctx context.Context, fetches []*fetch) error {
	var marks []*fetch
	for _, f := range fetches {
		f.marked = false
		if f.kind == fetchUnmark || f.kind == fetchHead && f.sub.class().marked() {
			marks = append(marks, f)
		}
	}
	if len(marks) == 0 {
		return nil
	}
	return journal.Do(context.WithoutCancel(ctx), b.store, func(tx journal.Tx) error {
		for _, f := range marks {
			d, err := tx.Delivery(f.item.Seq, f.sub.ID)
			if err != nil {
				return err
			}
			from, to := journal.Pending, journal.InFlight
			if f.kind == fetchUnmark {
				from, to = to, from
			}
			f.marked = d != nil && (d.State == from || d.State == to)
			if d == nil || d.State != from {
				continue
			}
			if d.State = to; to == journal.InFlight && !d.Uncertain {
				d.StartedAt = b.clock.Now()
			}
			if err := tx.UpdateDelivery(*d); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *Bus) read(r journal.Reader, f *fetch) (err error) {
	switch f.kind {
	case fetchMore:
		f.more, err = r.PendingLane(f.sub.ID, f.lane.key, f.lane.loaded, b.windows.lane+1)
	case fetchLoose:
		f.more, err = r.PendingLane(f.sub.ID, "", f.sub.loaded, b.windows.loose/2)
	case fetchHead:
		if f.event = f.item.event; f.event == nil {
			f.event, err = r.Event(f.item.Seq)
		}
		if err == nil && f.sub.class() == classInput && f.event != nil {
			f.turn, err = b.hooks.Turn(r, f.event)
		}
	}
	return err
}

// place puts the result of a fetch in memory. The caller holds b.mu.
func (b *Bus) place(f *fetch) {
	gone, l := f.sub.gone, f.lane
	b.fetched(f)
	switch f.kind {
	case fetchHead:
		if f.event == nil {
			b.buryHead(l, "its event is missing from the store")
			return
		}
		f.item.event, f.item.turn, f.item.created = f.event, f.turn, f.event.GetCreatedAtUs()
		if f.marked {
			f.item.State = journal.InFlight
		} else if f.sub.class().marked() {
			b.remove(f.sub, l.key, f.item.Seq) // it was settled meanwhile
		}
		b.offerFirst(l)
	case fetchUnmark:
		if f.marked {
			f.item.State = journal.Pending
		}
		b.offerFirst(l)
	case fetchMore:
		b.refill(l, f.more, gone)
	case fetchLoose:
		b.refillLoose(f.sub, f.more, gone)
	}
}

func (b *Bus) refill(l *lane, ds []journal.Delivery, gone map[int64]struct{}) {
	l.further = l.missed || len(ds) > b.windows.lane
	l.missed = false
	for _, d := range ds[:min(len(ds), b.windows.lane)] {
		l.loaded = max(l.loaded, d.Rank)
		if _, settled := gone[d.Seq]; !settled {
			l.items = append(l.items, &item{Delivery: fromStore(d), lane: l})
		}
	}
	if len(l.items) == 0 && !l.further {
		l.sub.forget(l)
		return
	}
	b.offerFirst(l)
}

func (b *Bus) refillLoose(s *subscription, ds []journal.Delivery, gone map[int64]struct{}) {
	s.further = s.missed || len(ds) == b.windows.loose/2
	for _, d := range ds {
		s.loaded = max(s.loaded, d.Rank)
		if _, settled := gone[d.Seq]; !settled && s.singles[d.Seq] == nil {
			b.addSingle(added{sub: s, delivery: fromStore(d)})
		}
	}
	if s.further && len(s.singles) <= b.windows.loose/8 {
		b.readLoose(s)
	}
}

// fromStore is a delivery that memory did not know: a send in flight at a crash
// becomes uncertain.
func fromStore(d journal.Delivery) journal.Delivery {
	d.Uncertain = d.Uncertain || d.State == journal.InFlight
	return d
}

// notHandedOut undoes the preparation of a lane's head that was not handed out.
// The caller holds b.mu and has dispatched.
func (b *Bus) notHandedOut(l *lane) {
	if l == nil || l.lease != nil || l.fetching || len(l.items) == 0 {
		return
	}
	it := l.items[0]
	it.turn = nil // it may change until then
	if l.sub.class().marked() && it.State == journal.InFlight && !it.Uncertain && !b.closing {
		l.fetching = true
		b.fetch(fetch{kind: fetchUnmark, sub: l.sub, lane: l, item: it})
	}
}
