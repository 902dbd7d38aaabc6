package bus_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// TestLanes has deliveries of a key come one at a time and in order, while
// others go on, whatever the first does.
func TestLanes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 100)
		w.publish("a.b", "a/1", "b/1", "a/2", "b/2", "a/3")
		x.wantHeld("a/1", "b/1")
		x.ack("b/1")
		x.wantHeld("a/1", "b/2")
		x.fail("a/1") // holds its lane until it is tried again
		x.wantHeld("b/2")
		x.ack("b/2")
		w.publish("a.b", "b/3", "c/1")
		x.wantHeld("b/3", "c/1")
		time.Sleep(2 * time.Second)
		x.wantHeld("a/1", "b/3", "c/1")
		x.ack("a/1")
		x.ack("a/2")
		x.ack("a/3")
		x.wantHeld("b/3", "c/1")
		if want := []string{
			"a/1#1",
			"b/1#1",
			"b/2#1",
			"b/3#1",
			"c/1#1",
			"a/1#2",
			"a/2#1",
			"a/3#1",
		}; !slices.Equal(
			x.seen,
			want,
		) {
			w.Errorf("deliveries came as %v, want %v", x.seen, want)
		}
	})
}

// TestSubscribersAreIndependent has one subscriber fail and one be away: a third
// runs once.
func TestSubscribersAreIndependent(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, id := range []string{"failing", "away", "good"} {
			w.subscribe(id, on("a.b")...)
		}
		failing, good := w.attach("failing", 10), w.attach("good", 10)
		seq := w.publish("a.b", "k/1")[0]
		good.ack("k/1")
		for range 3 {
			failing.fail("k/1")
			time.Sleep(time.Minute)
		}
		good.wantHeld()
		away := w.attach("away", 10)
		away.ack("k/1")
		time.Sleep(time.Second)
		states := map[journal.DeliveryState]int{}
		for _, d := range w.deliveries(seq) {
			states[d.State]++
		}
		if states[journal.Done] != 2 || states[journal.Dead] != 1 || !slices.Equal(good.seen, []string{"k/1#1"}) {
			w.Errorf("the states are %v, and the good one saw %v", states, good.seen)
		}
	})
}

// TestUnordered hands out all that have no key, or no order, at once.
func TestUnordered(t *testing.T) {
	inWorld(t, func(w *world) {
		s := on("a.b")[0]
		s.Ordered = false
		w.subscribe("x", s)
		w.subscribe("y", on("a.b")...)
		x, y := w.attach("x", 10), w.attach("y", 10)
		w.publish("a.b", "k/1", "k/2", "/3", "/4")
		x.wantHeld("k/1", "k/2", "/3", "/4")
		y.wantHeld("k/1", "/3", "/4")
		x.fail("k/2")
		x.ack("/3")
		y.ack("/4")
		time.Sleep(5 * time.Second)
		x.wantHeld("k/1", "k/2", "/4")
	})
}

// TestLongLane has more wait in a lane than are kept in memory, while others
// are added at its end.
func TestLongLane(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		var want []string
		add := func(n int) {
			var names []string
			for range n {
				names = append(names, fmt.Sprintf("k/%04d", len(want)+len(names)))
			}
			w.publish("a.b", names...)
			want = append(want, names...)
		}
		w.tune = func(o bus.Options) bus.Options { return o.WithWindows(8, 64, 2) }
		w.crash()
		add(60)
		x := w.attach("x", 5)
		for i := 0; i < len(want); i++ {
			if i%3 == 0 && len(want) < 150 {
				add(2)
			}
			held := x.holds()
			if len(held) != 1 || held[0] != want[i] {
				w.Fatalf("after %d the lane hands out %v, want %s", i, held, want[i])
			}
			if i == 30 {
				w.crash()
				x = w.attach("x", 5)
				x.wantHeld(want[i])
			}
			x.ack(want[i], publishEffect("c.d", want[i]))
		}
		x.wantHeld()
		if done := w.events("c.d"); len(done) != len(want) {
			w.Errorf("%d of %d were handled", len(done), len(want))
		}
	})
}

// TestManyWithoutOrder has more deliveries without an order than are kept in
// memory. Each comes exactly once.
func TestManyWithoutOrder(t *testing.T) {
	inWorld(t, func(w *world) {
		w.tune = func(o bus.Options) bus.Options { return o.WithWindows(64, 256, 100) }
		w.crash()
		w.subscribe("x", on("a.b")...)
		const n, extra = 1000, 400
		publish := func(from, count int) {
			names := make([]string, count)
			for i := range names {
				names[i] = fmt.Sprintf("/%d", from+i)
			}
			w.publish("a.b", names...)
		}
		publish(0, n)
		x := w.attach("x", 400)
		seen := map[string]bool{}
		for step, published := 0, n; len(seen) < n+extra; step++ {
			if step%2 == 1 && published < n+extra { // also while others are read
				publish(published, extra/10)
				published += extra / 10
			}
			x.holds()
			x.mu.Lock()
			batch := x.waiting[:min(len(x.waiting), 25)]
			x.waiting = x.waiting[len(batch):]
			x.mu.Unlock()
			if len(batch) == 0 {
				w.Fatalf("%d of %d were handed out", len(seen), published)
			}
			outcomes := make([]*busv1.Outcome, len(batch))
			for i, d := range batch {
				if seen[label(d)] {
					w.Fatalf("%s is handed out again", label(d))
				}
				seen[label(d)] = true
				outcomes[i] = &busv1.Outcome{Token: d.GetToken(), Kind: busv1.Outcome_KIND_ACK}
			}
			w.Outcomes(x.actor, outcomes)
		}
		time.Sleep(time.Second)
		x.wantHeld()
	})
}

// TestCredit sends no more than there is credit for, and a handler that waits
// for another event gets it: what runs holds no credit.
func TestCredit(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 0)
		w.publish("a.b", "a/1", "b/1", "c/1", "d/1")
		x.wantHeld()
		x.sink.Credit(2) // each is taken at once, which gives it back
		x.wantHeld("a/1", "b/1", "c/1", "d/1")
		x.ack("a/1", publishEffect("a.b", "e/1"))
		x.wantHeld("b/1", "c/1", "d/1", "e/1")

		slow := w.Attach(x.actor) // takes nothing: x is gone with that
		slow.Credit(2)
		got := map[string]bool{}
		for range 2 {
			f, _ := slow.Next(w.Context())
			for _, d := range f.Deliveries {
				got[label(d)] = true
			}
			if len(got) >= 2 {
				break
			}
		}
		if len(got) != 2 {
			w.Errorf("with a credit of 2 it was sent %v", got)
		}
	})
}
