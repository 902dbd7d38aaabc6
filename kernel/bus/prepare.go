package bus

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

const retryPrepare = time.Second

// begin has a lane wait until its head is prepared, and the sink keep a credit for it.
// The caller holds Bus.mu.
func (l *lane) begin(s *Sink) {
	if l.fetching, l.keeps = true, s; s != nil {
		s.reserved++
	}
}

// end undoes begin. After an error the lane is offered again after a while.
func (b *Bus) end(l *lane, err error) {
	if l.keeps != nil {
		l.keeps.reserved--
	}
	l.fetching, l.keeps = false, nil
	if err == nil {
		return
	}
	if !errors.Is(err, journal.ErrClosed) && !errors.Is(err, context.Canceled) {
		b.log.Error("prepare a delivery: trying again", "subscription", l.sub.Pattern, "extension", l.sub.Extension,
			"error", err)
	}
	l.wake = max(l.wake, b.clock.Steady()+retryPrepare.Microseconds())
	b.offer(l)
}

// fetch is a read from the store that a lane needs before its head is handed out.
type fetch struct {
	lane  *lane
	item  *item // the head, whose event and turn are read; nil: further deliveries are
	limit int   // of those
	after int64 // the rank after which they are

	event *busv1.Event
	turn  *busv1.TurnContext
	more  []journal.Delivery
	err   error
}

// fetch has the prepare loop read what a lane lacks. The caller holds b.mu.
func (b *Bus) fetch(l *lane, s *Sink) {
	l.begin(s)
	held, _, most := b.window(l)
	f := &fetch{lane: l, limit: most - held, after: l.loaded}
	if len(l.items) > 0 {
		f.item = l.items[0]
	} else {
		l.gone, l.missed = map[int64]struct{}{}, false
	}
	b.fetches = append(b.fetches, f)
	select {
	case b.prepare <- struct{}{}:
	default:
	}
}

// prepareLoop does the fetches. One that fails does not delay the others.
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
		err := b.store.View(ctx, func(r journal.Reader) error {
			for _, f := range fetches {
				f.err = b.read(r, f)
			}
			return nil
		})
		b.mu.Lock()
		for _, f := range slices.Backward(fetches) { // each goes to the front
			b.place(f, cmp.Or(err, f.err))
		}
		for _, s := range b.sinks {
			b.dispatch(s)
		}
		for _, f := range fetches {
			b.notHandedOut(f.lane)
		}
		b.mu.Unlock()
	}
}

func (b *Bus) read(r journal.Reader, f *fetch) (err error) {
	sub := f.lane.sub
	if f.item == nil {
		f.more, err = r.PendingLane(sub.ID, f.lane.key, f.after, f.limit+1)
		return err
	}
	if f.event = f.item.event; f.event == nil {
		f.event, err = r.Event(f.item.Seq)
	}
	if err == nil && sub.class() == classInput && f.event != nil {
		f.turn, err = b.hooks.Turn(r, f.event)
	}
	return err
}

// place puts what was read in memory. The caller holds b.mu.
func (b *Bus) place(f *fetch, err error) {
	l := f.lane
	if f.item == nil && err == nil {
		l.further = l.missed || len(f.more) > f.limit
		for _, d := range f.more[:min(len(f.more), f.limit)] {
			l.loaded = max(l.loaded, d.Rank)
			if _, settled := l.gone[d.Seq]; !settled {
				b.insert(l, item{Delivery: fromStore(d)})
			}
		}
		l.sub.forget(l, 0)
	}
	if f.item == nil {
		l.gone = nil
	}
	switch b.end(l, err); {
	case err != nil:
		return
	case f.item == nil:
	case f.event != nil:
		f.item.event, f.item.turn, f.item.created = f.event, f.turn, f.event.GetCreatedAtUs()
	case len(l.items) > 0 && l.items[0] == f.item && !l.sub.isEnding(l):
		b.buryHead(l, "its event is missing from the store")
	}
	b.offerFirst(l)
}

// mark stores that the head, a send or a command, is in flight before it is, so that
// a crash is not taken for never having tried; or that it is pending, because it was
// not handed out after all. The caller holds b.mu.
func (b *Bus) mark(l *lane, s *Sink, state journal.DeliveryState) {
	it, settled := l.items[0], false
	l.begin(s)
	b.spawn(func() {
		b.Commit(Change{Apply: func(tx *Tx) error {
			d, err := tx.Delivery(it.Seq, l.sub.ID)
			settled = err == nil && (d == nil || !slices.Contains(unsettled, d.State))
			if err != nil || settled || d.State == state {
				return err
			}
			if d.State = state; state == journal.InFlight && !d.Uncertain {
				d.StartedAt = tx.Now
			}
			return tx.UpdateDelivery(*d)
		}, Done: func(err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.end(l, err); err != nil {
				return
			}
			if !settled {
				it.State = state
			}
			b.offerFirst(l)
			b.dispatch(l.sub.sink)
			b.notHandedOut(l)
		}})
	})
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
		b.mark(l, nil, journal.Pending)
	}
}
