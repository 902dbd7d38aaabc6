package bus_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// TestOverflow has far more wait than is kept in memory, so that the store is
// read all the time, while others are published, acknowledged and withdrawn.
// Without a failure each is handled once, and those of a key in order.
func TestOverflow(t *testing.T) {
	inWorld(t, func(w *world) {
		w.tune = func(o bus.Options) bus.Options { return o.WithWindows(2, 4, 3) }
		w.crash()
		w.subscribe("x", on("a.b")...)
		w.store.slow.Store(true)
		var mu sync.Mutex
		seqs := map[string]int64{}
		handled := map[string]int{}
		order := map[string][]int64{}
		withdrawn := map[string]bool{}
		publish := func(key string, n int) {
			name := fmt.Sprintf("%s/%d", key, n)
			seq := w.publish("a.b", name)[0]
			mu.Lock()
			defer mu.Unlock()
			seqs[name] = seq
		}
		for n := range 12 {
			publish("a", n)
			publish("", n)
		}
		ctx, stop := context.WithCancel(w.Context())
		a := &bus.Actor{ID: "x", Generation: 1}
		sink := w.Attach(a)
		sink.Credit(3)
		var handlers, others sync.WaitGroup
		handlers.Go(func() {
			for {
				f, open := sink.Next(ctx)
				if !open {
					return
				}
				for _, d := range f.Deliveries {
					mu.Lock()
					handled[label(d)]++
					order[d.GetEvent().GetKey()] = append(order[d.GetEvent().GetKey()], d.GetEvent().GetSeq())
					mu.Unlock()
					sink.Credit(1)
					if rand.IntN(4) == 0 {
						time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
					}
					w.Outcome(a, &busv1.Outcome{Token: d.GetToken(), Kind: busv1.Outcome_KIND_ACK})
				}
			}
		})
		for _, key := range []string{"a", ""} {
			others.Go(func() {
				burst := 0
				for n := range 150 {
					publish(key, 100+n)
					if burst--; burst < 0 { // long enough for the lane to run dry at times
						burst = rand.IntN(7)
						time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
					}
				}
			})
		}
		others.Go(func() {
			for range 150 {
				mu.Lock()
				var name string
				var seq int64
				for n, s := range seqs { // one of the newest
					if s > seq && (seq == 0 || rand.IntN(4) > 0) {
						name, seq = n, s
					}
				}
				mu.Unlock()
				var inTime bool
				if err := w.Do(func(tx *bus.Tx) (err error) { inTime, err = tx.Withdraw(seq); return err }); err != nil {
					w.Error(err)
				}
				mu.Lock()
				withdrawn[name] = withdrawn[name] || inTime
				mu.Unlock()
				time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			}
		})
		others.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		stop()
		handlers.Wait()
		for name, seq := range seqs {
			if want := 1; withdrawn[name] && handled[name] != 0 || !withdrawn[name] && handled[name] != want {
				w.Errorf("%s was handled %d times; withdrawn: %t", name, handled[name], withdrawn[name])
			}
			w.wantState(seq, journal.Done)
		}
		if !slices.IsSorted(order["a"]) {
			w.Errorf("the lane was handled in the order %v", order["a"])
		}
	})
}
