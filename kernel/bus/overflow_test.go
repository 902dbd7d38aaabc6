package bus_test

import (
	"context"
	"fmt"
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
					if w.random.IntN(4) == 0 {
						time.Sleep(time.Duration(w.random.IntN(5)) * time.Millisecond)
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
						burst = w.random.IntN(7)
						time.Sleep(time.Duration(w.random.IntN(100)) * time.Millisecond)
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
					if s > seq && (seq == 0 || w.random.IntN(4) > 0) {
						name, seq = n, s
					}
				}
				mu.Unlock()
				var inTime bool
				if err := w.Do(func(tx *bus.Tx) (err error) { inTime, err = withdraw(tx, seq); return err }); err != nil {
					w.Error(err)
				}
				mu.Lock()
				withdrawn[name] = withdrawn[name] || inTime
				mu.Unlock()
				time.Sleep(time.Duration(w.random.IntN(20)) * time.Millisecond)
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

// TestReadMeetsChange holds up what was read of the store while another event is
// accepted and one of those that were read is withdrawn.
func TestReadMeetsChange(t *testing.T) {
	for _, key := range []string{"k", ""} {
		t.Run("key_"+key, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.tune = func(o bus.Options) bus.Options { return o.WithWindows(2, 4, 3) }
				w.crash()
				w.subscribe("x", on("a.b")...)
				name := func(n int) string { return fmt.Sprintf("%s/%d", key, n) }
				x := w.attach("x", 10)
				w.publish("a.b", name(1), name(2))
				x.ack(name(1), publishEffect("c.d", ""))
				x.wantHeld(name(2))
				if key == "" {
					w.publish("a.b", "/fill", "/fill")
				}
				w.publish("a.b", name(3), name(4), name(5)) // 4 and 5 are not kept in memory
				held := x.holds()
				gate := make(chan struct{})
				w.store.gate.Store(&gate)
				for _, h := range held {
					x.ack(h)
				}
				for len(x.holds()) > 0 {
					x.ack(x.holds()[0])
				}
				// They are being read.
				w.publish("a.b", name(6))
				last := w.publish("a.b", name(7))[0]
				withdraw := func(seq int64) {
					if err := w.Do(func(tx *bus.Tx) error {
						if inTime, err := withdraw(tx, seq); err != nil || !inTime {
							w.Errorf("withdrawing: in time %t, %v", inTime, err)
						}
						return nil
					}); err != nil {
						w.Fatal(err)
					}
				}
				withdraw(last - 2) // 5, which was read
				withdraw(last)     // 7, which was not
				synctest.Wait()
				w.store.gate.Store(nil)
				close(gate)
				var got []string
				for {
					time.Sleep(time.Minute)
					held := x.holds()
					if len(held) == 0 {
						break
					}
					for _, h := range held {
						got = append(got, h)
						x.ack(h)
					}
				}
				if !slices.Contains(got, name(6)) || slices.Contains(got, name(5)) || slices.Contains(got, name(7)) {
					w.Errorf("after the change it hands out %v", got)
				}
				if n := w.load("x").Lanes; n != 0 {
					w.Errorf("%d lanes are left", n)
				}
			})
		})
	}
}
