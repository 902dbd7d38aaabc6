package bus

import (
	"context"
	"errors"
	"slices"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// ErrSlow ends a watch whose reader does not keep up.
var ErrSlow = errors.New("watcher is too slow")

const watchWindow = 1024

// Watcher gets events as they become durable, from its start on.
type Watcher struct {
	patterns []string
	events   chan *busv1.Event
	closed   bool
	err      error
}

// Watch starts a watcher; no pattern means every event. It ends with ctx.
func (b *Bus) Watch(ctx context.Context, patterns ...string) *Watcher {
	w := &Watcher{patterns: patterns, events: make(chan *busv1.Event, watchWindow)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing {
		w.close(nil)
		return w
	}
	b.watchers[w] = struct{}{}
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, w)
		w.close(ctx.Err())
	})
	return w
}

// Events is closed when the watch ends; Err says why.
func (w *Watcher) Events() <-chan *busv1.Event { return w.events }

// Err is why the watch ended; valid after Events was closed.
func (w *Watcher) Err() error { return w.err }

func (w *Watcher) offer(e *busv1.Event) {
	matches := func(p string) bool { return topic.Match(p, e.GetTopic()) }
	if w.closed || len(w.patterns) > 0 && !slices.ContainsFunc(w.patterns, matches) {
		return
	}
	select {
	case w.events <- e:
	default:
		w.close(ErrSlow)
	}
}

func (w *Watcher) close(err error) {
	if !w.closed {
		w.closed, w.err = true, err
		close(w.events)
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
