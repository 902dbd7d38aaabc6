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

// TestStorm has many publish while handlers fail, are slow, end and come back,
// the store refuses and the kernel restarts. In the end each event has had its
// effect exactly once, and those of a key in order.
func TestStorm(t *testing.T) {
	inWorld(t, func(w *world) {
		w.tune = func(o bus.Options) bus.Options { return o.WithWindows(4, 16, 10) }
		w.keep = [2]time.Duration{1 << 60, 1 << 60}
		w.crash()
		s := on("a.b")[0]
		s.MaxDeliver, s.MaxAge = 0, 0
		w.subscribe("x", s)
		const publishers, each = 6, 40
		for phase := range 3 {
			w.store.slow.Store(true)
			ctx, stop := context.WithCancel(w.Context())
			var players sync.WaitGroup
			players.Go(func() { w.playHandlers(ctx) })
			players.Go(func() { w.playDisk(ctx) })
			var publishing sync.WaitGroup
			for p := range publishers {
				publishing.Go(func() { w.playPublisher(p, phase*each, each) })
			}
			publishing.Wait()
			time.Sleep(time.Second)
			stop()
			players.Wait()
			w.store.full.Store(false)
			w.store.slow.Store(false)
			w.crash()
		}
		w.store.slow.Store(true)
		x := w.attach("x", 64)
		for {
			time.Sleep(time.Minute)
			held := x.holds()
			if len(held) == 0 {
				break
			}
			for _, name := range held {
				x.ack(name, publishEffect("c.d", name))
			}
		}
		done := map[string][]string{}
		for _, e := range w.events("c.d") {
			name := label(&busv1.Delivery{Event: e})
			done[e.GetKey()] = append(done[e.GetKey()], name)
		}
		for p := range publishers {
			for _, key := range []string{fmt.Sprint("p", p), ""} {
				var want []string
				for i := range 3 * each {
					if (i%5 == 0) == (key == "") {
						want = append(want, fmt.Sprintf("%s/%d-%03d", key, p, i))
					}
				}
				got := done[key]
				if key == "" { // no order
					got = slices.DeleteFunc(slices.Clone(got), func(name string) bool { return name[1:3] != fmt.Sprint(p, "-") })
					slices.Sort(got)
				}
				if !slices.Equal(got, want) {
					w.Errorf("publisher %d, key %q: the effects are\n%v, want\n%v", p, key, got, want)
				}
			}
		}
	})
}

func (w *world) playPublisher(p, from, n int) {
	for i := from; i < from+n; i++ {
		name := fmt.Sprintf("p%d/%d-%03d", p, p, i)
		if i%5 == 0 {
			name = fmt.Sprintf("/%d-%03d", p, i)
		}
		for w.tryPublish("a.b", name) != nil {
			time.Sleep(30 * time.Millisecond)
		}
		time.Sleep(time.Duration(w.random.IntN(20)) * time.Millisecond)
	}
}

func (w *world) tryPublish(topic, name string) error {
	e := publishEffect(topic, name).GetPublish()
	return w.Do(func(tx *bus.Tx) error {
		_, err := tx.Accept(&busv1.Event{Topic: e.GetTopic(), Key: e.GetKey(), Source: "kernel", Payload: e.GetPayload()})
		return err
	})
}

func (w *world) playDisk(ctx context.Context) {
	for full := false; ctx.Err() == nil; full = !full {
		w.store.full.Store(full)
		time.Sleep(time.Duration(w.random.IntN(100)) * time.Millisecond)
	}
}

// playHandlers runs generations of an extension, one after the other, whose
// handlers answer as they like.
func (w *world) playHandlers(ctx context.Context) {
	for generation := int64(1); ctx.Err() == nil; generation++ {
		a := &bus.Actor{ID: "x", Generation: w.runs + generation, Publish: []string{"*"}}
		sink := w.Attach(a)
		life, end := context.WithTimeout(ctx, time.Duration(50+w.random.IntN(400))*time.Millisecond)
		var handlers sync.WaitGroup
		sink.Credit(1 + w.random.IntN(20))
		for {
			f, open := sink.Next(life)
			if !open {
				break
			}
			for _, d := range f.Deliveries {
				handlers.Go(func() {
					sink.Credit(1)
					time.Sleep(time.Duration(w.random.IntN(30)) * time.Millisecond)
					if life.Err() == nil || w.random.IntN(2) == 0 { // else it died silently
						w.Outcome(a, w.randomOutcome(d))
					}
				})
			}
		}
		end()
		w.Gone("x", a.Generation, "ended", w.random.IntN(2) == 0)
		handlers.Wait()
	}
}

func (w *world) randomOutcome(d *busv1.Delivery) *busv1.Outcome {
	o := &busv1.Outcome{
		Token:   d.GetToken(),
		Kind:    busv1.Outcome_KIND_ACK,
		Effects: []*busv1.Effect{publishEffect("c.d", label(d))},
	}
	version := int64(99)
	switch w.random.IntN(8) {
	case 0:
		o.Kind, o.Effects = busv1.Outcome_KIND_FAIL, nil
	case 1:
		o.Kind, o.Effects, o.RetryAfterMs = busv1.Outcome_KIND_RETRY, nil, int64(w.random.IntN(1500))
	case 2:
		o.Effects = append(o.Effects, effect(&busv1.Put{Key: "k", Version: &version})) // conflicts
	}
	return o
}

// TestRaces settles deliveries from outside while they are handed out and
// answered: each ends once, and what came to nothing had no effect.
func TestRaces(t *testing.T) {
	inWorld(t, func(w *world) {
		w.tune = func(o bus.Options) bus.Options { return o.WithWindows(2, 4, 3) }
		w.crash()
		w.subscribe("x", on("a.b")...)
		w.store.slow.Store(true)
		ctx, stop := context.WithCancel(w.Context())
		a := &bus.Actor{ID: "x", Generation: 1, Publish: []string{"*"}}
		sink := w.Attach(a)
		sink.Credit(8)
		var players sync.WaitGroup
		players.Go(func() {
			for {
				f, open := sink.Next(ctx)
				if !open {
					return
				}
				for _, d := range f.Deliveries {
					sink.Credit(1)
					w.Outcome(
						a,
						&busv1.Outcome{
							Token:   d.GetToken(),
							Kind:    busv1.Outcome_KIND_ACK,
							Effects: []*busv1.Effect{publishEffect("c.d", label(d))},
						},
					)
				}
			}
		})
		withdrawn := make([]bool, 300)
		var mu sync.Mutex
		seqs := map[int64]int{}
		var racers sync.WaitGroup
		for i := range withdrawn {
			racers.Go(func() {
				key := []string{"a", "b", ""}[i%3]
				seq := w.publish("a.b", fmt.Sprintf("%s/%d", key, i))[0]
				mu.Lock()
				seqs[seq] = i
				mu.Unlock()
				if i%2 == 0 {
					_ = w.Do(func(tx *bus.Tx) (err error) { withdrawn[i], err = withdraw(tx, seq); return err })
				} else if i%9 == 1 {
					_ = w.Do(func(tx *bus.Tx) error { _, err := tx.TakeBack("x", "a.b", key); return err })
				}
			})
		}
		racers.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		stop()
		players.Wait()
		effects := map[string]int{}
		for _, e := range w.events("c.d") {
			effects[label(&busv1.Delivery{Event: e})]++
		}
		for seq, i := range seqs {
			name := fmt.Sprintf("%s/%d", []string{"a", "b", ""}[i%3], i)
			d := w.wantState(seq, journal.Done)
			if want := d.Reason == ""; effects[name] > 1 || want != (effects[name] == 1) ||
				withdrawn[i] != (d.Reason == "withdrawn") {
				w.Errorf("%s: %d effects, withdrawn in time: %t, settled because %q", name, effects[name], withdrawn[i], d.Reason)
			}
		}
		if l := w.load("x"); l.Lanes != 0 || l.InFlight != 0 {
			w.Errorf("in the end there is %+v", l)
		}
	})
}
