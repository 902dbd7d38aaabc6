package bus_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// TestClose closes bus and store in the middle of everything: each commit is
// either durable or refused, nothing is handed out any more, and nothing goes
// on running.
func TestClose(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		w.store.slow.Store(true)
		x := w.attach("x", 100)
		var publishers sync.WaitGroup
		var mu sync.Mutex
		accepted := 0
		for range 20 {
			publishers.Go(func() {
				for {
					switch err := w.tryPublish("a.b", "k/1"); {
					case errors.Is(err, journal.ErrClosed):
						return
					case err != nil:
						w.Errorf("publishing while the bus closes: %v", err)
						return
					}
					mu.Lock()
					accepted++
					mu.Unlock()
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		d := x.take("k/1")
		w.Close()
		w.Close() // once more
		x.answer(d, &busv1.Outcome{Kind: busv1.Outcome_KIND_RETRY, RetryAfterMs: 10})
		if f, open := w.Attach(&bus.Actor{ID: "y", Generation: 1}).Next(w.Context()); open {
			w.Errorf("a closed bus hands out %v", f)
		}
		if err := w.store.Close(); err != nil {
			w.Error(err)
		}
		publishers.Wait()
		synctest.Wait()
		w.boot()
		if n := len(w.events("a.b")); n != accepted {
			w.Errorf("%d events were accepted, the store has %d", accepted, n)
		}
		w.attach("x", 10).take("k/1")
	})
}
