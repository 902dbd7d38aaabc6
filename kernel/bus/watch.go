package bus

import (
	"context"
	"math"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// FromNow as EventFilter.After leaves out what was accepted before.
const FromNow = -1

// eventPage is how many events are read at once: they may be large.
const eventPage = 16

// View reads a snapshot of the store.
type View func(context.Context, func(journal.Reader) error) error

// Events calls each with the events that a filter selects, read page by page: no view is
// held meanwhile. With follow it has no limit, and goes on with the events that are
// accepted later, in their order, until ctx ends, each fails, or the bus is closed, which
// is no error.
func (b *Bus) Events(
	ctx context.Context, view View, f journal.EventFilter, follow bool, each func(*busv1.Event) error,
) error {
	left := f.Limit
	if follow {
		f.Ascending, left = true, math.MaxInt
	}
	for left > 0 {
		news, open := b.more()
		f.Limit = min(left, eventPage)
		var rows []*busv1.Event
		var last int64
		err := view(ctx, func(r journal.Reader) (err error) {
			if f.After != FromNow {
				rows, err = r.Events(f)
			}
			if err == nil && follow && len(rows) < f.Limit {
				last, err = r.LastSeq()
			}
			return err
		})
		for i := 0; i < len(rows) && err == nil; i++ {
			err = each(rows[i])
		}
		if err != nil {
			return err
		}
		switch n := len(rows); {
		case n == f.Limit && f.Ascending:
			f.After = rows[n-1].GetSeq()
		case n == f.Limit:
			f.Before = rows[n-1].GetSeq()
		case !follow || !open:
			return nil
		default:
			f.After = max(f.After, last) // the next event is later than that
			select {
			case <-news:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		left -= len(rows)
	}
	return nil
}

// more returns a channel that is closed once further events are durable, or the bus is
// closed, which open says.
func (b *Bus) more() (news <-chan struct{}, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.news == nil {
		b.news = make(chan struct{})
	}
	return b.news, !b.closing
}

// tellNews wakes those who follow the events. The caller holds b.mu.
func (b *Bus) tellNews() {
	if b.news != nil {
		close(b.news)
		b.news = nil
	}
}

// OnSettled calls f once, on another goroutine, when a delivery of the
// event is settled by a later commit, unless the bus is closed before.
func (b *Bus) OnSettled(seq int64, f func(journal.Delivery)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settling[seq] = append(b.settling[seq], f)
}

// ForgetSettled drops what waits for an event to be settled.
func (b *Bus) ForgetSettled(seq int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.settling, seq)
}

// reportSettled calls the functions of OnSettled for a delivery. The caller holds
// b.mu.
func (b *Bus) reportSettled(d journal.Delivery) {
	waiting := b.settling[d.Seq]
	if len(waiting) == 0 {
		return
	}
	delete(b.settling, d.Seq)
	settled := d // d itself need not escape
	b.spawn(func() {
		for _, f := range waiting {
			f(settled)
		}
	})
}
