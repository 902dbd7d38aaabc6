package bus_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// TestSubscriptionLife begins with the next event, keeps its deliveries over a
// change, collects while it is parked, and ends a day after.
func TestSubscriptionLife(t *testing.T) {
	inWorld(t, func(w *world) {
		w.keep = [2]time.Duration{100 * time.Hour, 100 * time.Hour}
		w.crash()
		w.publish("a.b", "before/1")
		w.subscribe("x", on("a.b")...)
		w.publish("a.b", "k/1") // nobody is there: it waits
		x := w.attach("x", 10)
		x.wantHeld("k/1")

		changed := on("a.b")
		changed[0].AckWait, changed[0].MaxDeliver = time.Hour, 1
		w.subscribe("x", append(changed, on("c.d")...)...) // a reload of the manifest
		x.wantHeld("k/1")
		w.publish("c.d", "new/1")
		x.wantHeld("k/1", "new/1")
		x.ack("new/1")

		w.subscribe("x", on("c.d")...) // a.b is removed
		seq := w.publish("a.b", "k/2", "l/1")[0]
		x.wantHeld("k/1")
		x.ack("k/1", publishEffect("e.f", "done")) // what runs goes on
		time.Sleep(23 * time.Hour)
		w.crash()
		x = w.attach("x", 10)
		x.wantHeld()
		w.subscribe("x", on("a.b", "c.d")...)
		w.wantState(seq, journal.Pending) // handed out, which is not written down
		x.wantHeld("k/2", "l/1")

		w.subscribe("x", on("c.d")...)
		last := w.publish("a.b", "k/3")[0]
		time.Sleep(26 * time.Hour)
		if ds := w.deliveries(last); len(ds) > 0 {
			w.Errorf("two hours after the end of a subscription there is %+v", ds)
		}
		x.take("k/2")
		w.subscribe("x", on("a.b", "c.d")...)
		w.publish("a.b", "fresh/1")
		x.wantHeld("l/1", "fresh/1")
	})
}

// TestSubscribeTwice registers again and again, over restarts: every event comes
// once.
func TestSubscribeTwice(t *testing.T) {
	inWorld(t, func(w *world) {
		for range 3 {
			w.subscribe("x", on("a.b", "a.*")...)
			x := w.attach("x", 10)
			w.subscribe("x", on("a.b", "a.*")...)
			w.publish("a.b", "k/1", "k/2")
			x.wantHeld("k/1", "k/1") // by each of the two patterns
			x.ack("k/1")
			x.ack("k/1")
			x.wantHeld("k/2", "k/2")
			x.ack("k/2")
			x.ack("k/2")
			time.Sleep(time.Second)
			w.crash()
		}
	})
}

// TestSubscribeFails leaves everything as it was.
func TestSubscribeFails(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		w.store.full.Store(true)
		if err := w.Subscribe("x", on("c.d")); err == nil {
			w.Fatal("a full store took a subscription")
		}
		w.store.full.Store(false)
		w.publish("a.b", "k/1")
		w.publish("c.d", "k/2")
		x.wantHeld("k/1")
		if err := w.Subscribe("x", on("a.b", "c.d")); err != nil {
			w.Fatal(err)
		}
		w.publish("c.d", "k/3")
		x.wantHeld("k/1", "k/3")
		for _, l := range w.Loads() { // the kernel has one, too
			if l.Extension != "x" {
				w.Errorf("%q has subscriptions", l.Extension)
			}
		}
		w.load("x")
	})
}

// TestEndOfParkedFails keeps a parked subscription whose end could not be
// stored.
func TestEndOfParkedFails(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		w.subscribe("x")
		w.publish("a.b", "k/1")
		w.store.full.Store(true)
		if _, err := w.Prune(time.Now().Add(25 * time.Hour)); err == nil {
			w.Fatal("a full store pruned")
		}
		w.store.full.Store(false)
		w.publish("a.b", "k/2")
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		x.wantHeld("k/1")
		x.ack("k/1")
		x.wantHeld("k/2")
	})
}

// TestResubmit queues dead deliveries at the end of their lane, in the order in
// which it is asked, with all attempts, and as old as that.
func TestResubmit(t *testing.T) {
	inWorld(t, func(w *world) {
		w.keep = [2]time.Duration{100 * time.Hour, 100 * time.Hour}
		w.crash()
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		seqs := w.publish("a.b", "k/1", "k/2", "k/3", "k/4")
		x.fail("k/1")
		time.Sleep(time.Second)
		for range 2 {
			time.Sleep(time.Minute)
			x.fail("k/1")
		}
		w.wantState(seqs[0], journal.Dead)
		x.retry("k/2", 0)
		for range 3 {
			time.Sleep(time.Minute)
			x.fail("k/2")
		}
		w.wantState(seqs[1], journal.Dead)
		time.Sleep(23*time.Hour + 50*time.Minute) // almost too old
		for _, seq := range []int64{seqs[1], seqs[0]} {
			if n, err := w.Resubmit(journal.EventID(seq)); n != 1 || err != nil {
				w.Fatalf("resubmitting event %d: %d, %v", seq, n, err)
			}
		}
		w.publish("a.b", "k/5")
		if _, err := w.Resubmit(journal.EventID(seqs[0])); err == nil {
			w.Error("what is not dead was resubmitted")
		}
		x.wantHeld("k/3")
		w.crash()
		x = w.attach("x", 10)
		x.ack("k/3")
		x.ack("k/4")
		time.Sleep(time.Hour) // too old but for having been resubmitted
		x.retry("k/2", 0)
		if d := x.take("k/2"); d.GetAttempt() != 1 {
			w.Errorf("resubmitted, it is attempt %d", d.GetAttempt())
		} else {
			x.answer(d, ackOutcome())
		}
		x.ack("k/1")
		x.ack("k/5")
		time.Sleep(time.Second)
		for _, seq := range seqs {
			w.wantState(seq, journal.Done)
		}
		_, err := w.Resubmit(journal.EventID(seqs[0]))
		wantError(w, err, contract.ErrNotFound, "has no dead delivery")
	})
}

// TestUnroutable keeps what the router could not route as a dead letter of the
// kernel's, and routes it again when asked.
func TestUnroutable(t *testing.T) {
	inWorld(t, func(w *world) {
		lost := true
		w.router.set(func() {
			w.router.accept = func(tx *bus.Tx, e *busv1.Event) error {
				if e.GetTopic() != "user.message" {
					return nil
				}
				if lost {
					return tx.Dead(e, "nobody knows where to")
				}
				_, err := tx.Emit("c.d", "", "routed")
				return err
			}
		})
		seq := w.publish("user.message", "hello")[0]
		if d := w.wantState(seq, journal.Dead); d.Reason != "nobody knows where to" {
			w.Errorf("the dead letter is %+v", d)
		}
		if _, err := w.Resubmit(journal.EventID(seq)); err != nil {
			w.Fatal(err)
		}
		w.wantState(seq, journal.Dead) // once more
		w.router.set(func() { lost = false })
		if _, err := w.Resubmit(journal.EventID(seq)); err != nil {
			w.Fatal(err)
		}
		w.wantState(seq, journal.Done)
		if n := len(w.events("c.d")); n != 1 {
			w.Errorf("it was routed %d times", n)
		}
	})
}

// TestEvents shows what became durable, in order, to those who follow it. One that is
// slow delays nobody and misses nothing.
func TestEvents(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.publish("a.b", "0")[0]
		follow := func(ctx context.Context, f journal.EventFilter) (<-chan int64, <-chan error) {
			seen, ended := make(chan int64), make(chan error, 1)
			go func() {
				ended <- w.Events(ctx, w.View, f, true, func(e *busv1.Event) error {
					select {
					case seen <- e.GetSeq():
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
			}()
			synctest.Wait()
			return seen, ended
		}
		ctx, cancel := context.WithCancel(w.Context())
		now, end := follow(ctx, journal.EventFilter{After: bus.FromNow})
		all, closed := follow(w.Context(), journal.EventFilter{})
		some, _ := follow(w.Context(), journal.EventFilter{Topic: "a.*"})
		w.store.full.Store(true)
		if err := w.Do(func(tx *bus.Tx) error { _, err := tx.Emit("a.b", "", "never"); return err }); err == nil {
			w.Fatal("the full store took an event")
		}
		w.store.full.Store(false)
		var later, topic []int64
		for range 600 { // nobody reads meanwhile
			later = append(later, w.publish("c.d", "1")...)
			topic = append(topic, w.publish("a.b", "2", "3")...)
			later = append(later, topic[len(topic)-2:]...)
		}
		for name, c := range map[string]struct {
			seen <-chan int64
			want []int64
		}{
			"from now on": {now, later}, "all": {all, append([]int64{first}, later...)},
			"some": {some, append([]int64{first}, topic...)},
		} {
			var got []int64
			for range c.want {
				got = append(got, <-c.seen)
			}
			synctest.Wait()
			if !slices.Equal(got, c.want) {
				w.Errorf("%s: seen are %v, want %v", name, got, c.want)
			}
			select {
			case seq := <-c.seen:
				w.Errorf("%s: then there is %d", name, seq)
			default:
			}
		}
		cancel()
		if err := <-end; !errors.Is(err, context.Canceled) {
			w.Errorf("a follower that was cancelled ended with %v", err)
		}
		last := w.publish("c.d", "4")[0]
		w.Close()
		if seq := <-all; seq != last {
			w.Errorf("at the end there is %d, want %d", seq, last)
		}
		if err := <-closed; err != nil {
			w.Errorf("at the end of the bus: %v", err)
		}
		if err := w.Events(w.Context(), w.View, journal.EventFilter{After: last}, true, nil); err != nil {
			w.Errorf("a closed bus: %v", err)
		}
	})
}

// TestEventsInPages reads at most as many as were asked for, in both directions.
func TestEventsInPages(t *testing.T) {
	inWorld(t, func(w *world) {
		all := w.publish("a.b", make([]string, 100)...)
		for _, limit := range []int{1, 15, 16, 17, 32, 99, 100, 101} {
			for _, ascending := range []bool{true, false} {
				var got []int64
				f := journal.EventFilter{Limit: limit, Ascending: ascending}
				if err := w.Events(w.Context(), w.View, f, false, func(e *busv1.Event) error {
					got = append(got, e.GetSeq())
					return nil
				}); err != nil {
					w.Fatal(err)
				}
				want := slices.Clone(all)
				if !ascending {
					slices.Reverse(want)
				}
				if !slices.Equal(got, want[:min(limit, len(want))]) {
					w.Errorf("limit %d, ascending %t: %v", limit, ascending, got)
				}
			}
		}
	})
}

// TestRetention prunes in the background what is settled and old, in small
// batches, and nothing else.
func TestRetention(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		w.publish("c.d", make([]string, 500)...)
		pending := w.publish("a.b", "k/1")[0]
		dropped := w.publish("a.b", "l/1")[0]
		x.answer(x.take("l/1"), dropOutcome())
		x.wantHeld("k/1")
		time.Sleep(30 * time.Minute)
		young := w.publish("c.d", "young")[0]
		time.Sleep(75 * time.Minute) // 105 minutes: past 60, not 120
		if got := seqsOf(w.events("*")); !slices.Equal(got, []int64{pending, dropped, young}) {
			w.Errorf("after the retention of events there are %v, want %v", got, []int64{pending, dropped, young})
		}
		w.publish("c.d", "newest")
		time.Sleep(80 * time.Minute)
		got := seqsOf(w.events("*"))
		if !slices.Contains(got, pending) || slices.Contains(got, dropped) || slices.Contains(got, young) {
			w.Errorf("after the retention of dead letters there are %v", got)
		}
		x.ack("k/1")
	})
}
