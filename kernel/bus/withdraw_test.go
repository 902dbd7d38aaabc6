package bus_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// TestWithdraw settles what nobody has taken, with what the router made of it,
// and says when it is too late.
func TestWithdraw(t *testing.T) {
	inWorld(t, func(w *world) {
		w.router.set(func() {
			w.router.accept = func(tx *bus.Tx, e *busv1.Event) error {
				if e.GetTopic() == "a.b" {
					_, err := tx.Emit("derived.event", e.GetKey(), "derived/1")
					return err
				}
				return nil
			}
		})
		w.subscribe("s", on("a.b", "derived.event")...)
		x := w.attach("x", 10)
		publish := func(name, dedupe string) string {
			e := publishEffect("a.b", name)
			e.GetPublish().DedupeKey = dedupe
			r, err := x.commit(&busv1.Commit{Effects: []*busv1.Effect{e}})
			if err != nil {
				w.Fatal(err)
			}
			return r.GetResults()[0].GetEventId()
		}
		withdraw := func(want bool, by *busv1.Withdraw) {
			w.Helper()
			r, err := x.commit(&busv1.Commit{Effects: []*busv1.Effect{effect(by)}})
			if err != nil || r.GetResults()[0].GetTooLate() == want {
				w.Errorf("withdrawing %v: in time %t, want %t (%v)", by, !r.GetResults()[0].GetTooLate(), want, err)
			}
		}
		early := publish("k/1", "")
		publish("k/2", "d")
		withdraw(true, &busv1.Withdraw{EventId: early})
		withdraw(true, &busv1.Withdraw{DedupeKey: "d"})
		withdraw(true, &busv1.Withdraw{EventId: early}) // again
		withdraw(true, &busv1.Withdraw{DedupeKey: "never used"})
		s := w.attach("s", 10)
		s.wantHeld()
		late := publish("k/3", "")
		behind := publish("k/4", "")
		s.wantHeld("k/3", "derived/1")
		withdraw(true, &busv1.Withdraw{EventId: behind}) // its turn has not come
		withdraw(false, &busv1.Withdraw{EventId: late})
		s.ack("k/3")
		s.ack("derived/1")
		s.wantHeld()
		withdraw(false, &busv1.Withdraw{EventId: late})

		// Of a process that is gone it is not known whether it began.
		again := publish("l/1", "")
		s.wantHeld("l/1", "derived/1")
		s.gone(true)
		s.holds()
		withdraw(true, &busv1.Withdraw{EventId: again})
		s = w.attach("s", 10)
		s.wantHeld()
		if n := w.load("s").Lanes; n != 0 {
			w.Errorf("%d lanes are left", n)
		}
		// A store that refuses takes nothing away.
		w.Pause("s")
		kept := publish("m/1", "")
		w.store.full.Store(true)
		_, err := x.commit(&busv1.Commit{Effects: []*busv1.Effect{effect(&busv1.Withdraw{EventId: kept})}})
		wantError(w, err, contract.ErrFull)
		w.store.full.Store(false)
		s.gone(true)
		w.attach("s", 10).wantHeld("m/1", "derived/1")
	})
}

// TestReplace gives the place in the lane to another event, unless it is taken.
func TestAnExtensionThatGivesNoCreditIsNoted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		w.publish("a.b", "k/1")
		if w.load("x").NoCredit {
			w.Error("it does not run yet")
		}
		x := w.attach("x", 0)
		if !w.load("x").NoCredit {
			w.Error("it is not noted")
		}
		x.sink.Credit(1)
		if w.load("x").NoCredit {
			w.Error("it is noted after it gave credit")
		}
		x.ack("k/1")
	})
}

func TestReplace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		seqs := w.publish("a.b", "k/1", "k/2", "k/3", "k/4")
		replace := func(seq int64, name string) (replaced bool) {
			w.Helper()
			if err := w.Do(func(tx *bus.Tx) error {
				ds, err := tx.Deliveries(journal.DeliveryFilter{Seq: seq})
				if err != nil {
					return err
				}
				payload, _ := json.Marshal(name)
				replaced, err = tx.Replace(ds[0], &busv1.Event{Topic: "a.b", Key: "k", Source: "kernel", Payload: payload})
				return err
			}); err != nil {
				w.Fatal(err)
			}
			return replaced
		}
		x.wantHeld("k/1")
		if replace(seqs[0], "k/no") {
			w.Error("what is being handled was replaced")
		}
		if !replace(seqs[1], "k/2b") || !replace(seqs[3], "k/4b") {
			w.Error("what waits was not replaced")
		}
		for _, name := range []string{"k/1", "k/2b", "k/3", "k/4b"} {
			x.wantHeld(name)
			if name == "k/2b" {
				w.crash()
				x = w.attach("x", 10)
			}
			x.ack(name)
		}
		x.wantHeld()
		w.Pause("x")
		head := w.publish("a.b", "k/5", "k/6")[0]
		if !replace(head, "k/5b") {
			w.Error("a head that nobody was handed was not replaced")
		}
		x.gone(true)
		x = w.attach("x", 10)
		x.ack("k/5b")
		x.ack("k/6")
	})
}

// TestTakeBack takes a lane from its holder, whose answer comes to nothing.
func TestTakeBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		takeBack := func() (e *busv1.Event, err error) {
			err = w.Do(func(tx *bus.Tx) error { e, err = tx.TakeBack("x", "a.b", "k"); return err })
			return e, err
		}
		if e, err := takeBack(); e != nil || err != nil {
			w.Errorf("taken back from nobody: %v, %v", e, err)
		}
		seqs := w.publish("a.b", "k/1", "k/2")
		d := x.take("k/1")
		w.store.full.Store(true)
		if _, err := takeBack(); err == nil {
			w.Error("a full store took it")
		}
		w.store.full.Store(false)
		if len(x.cancelled()) > 0 {
			w.Error("a handler was cancelled by what did not happen")
		}
		if e, err := takeBack(); err != nil || e.GetSeq() != seqs[0] {
			w.Errorf("taken back is %v, %v", e, err)
		}
		x.wantHeld("k/2")
		if !slices.Equal(x.cancelled(), []string{d.GetToken()}) {
			w.Errorf("cancelled are %v", x.cancelled())
		}
		x.answer(d, &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK, Effects: []*busv1.Effect{publishEffect("c.d", "late")}})
		x.wantHeld("k/2")
		if d := w.wantState(seqs[0], journal.Done); d.Reason != "cancelled" || len(w.events("c.d")) > 0 {
			w.Errorf("the one that was taken back is %+v", d)
		}
		// It races with an answer, and with the end of the process: one of them
		// wins, and the lane goes on.
		for _, end := range []func(){
			func() { x.ack("k/2", publishEffect("c.d", "raced")) },
			func() { x.fail("k/2") },
			func() { x.gone(true); x = w.attach("x", 10) },
			func() { x.gone(false); x = w.attach("x", 10) },
		} {
			done := make(chan struct{})
			go func() { _, _ = takeBack(); close(done) }()
			end()
			<-done
			time.Sleep(time.Minute)
			for len(x.holds()) > 0 {
				x.ack(x.holds()[0])
			}
			w.publish("a.b", "k/2", "k/3")
			x.wantHeld("k/2")
		}
	})
}

// A delivery that is handed out while a commit ends it stays ended, whatever its
// handler answers, and its lane goes on.
func TestHandedOutWhileItIsSettled(t *testing.T) {
	for _, end := range []busv1.Outcome_Kind{
		busv1.Outcome_KIND_ACK, busv1.Outcome_KIND_FAIL, busv1.Outcome_KIND_RETRY, busv1.Outcome_KIND_DROP,
	} {
		t.Run(end.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.subscribe("x", on("a.b")...)
				x := w.attach("x", 0)
				seqs := w.publish("a.b", "k/1", "k/2")
				if err := w.Do(func(tx *bus.Tx) error {
					if e, err := tx.TakeBack("x", "a.b", "k"); e != nil || err != nil {
						w.Errorf("somebody holds %v, %v", e, err)
					}
					x.sink.Credit(1)
					x.wantHeld("k/1")
					ds, err := tx.Deliveries(journal.DeliveryFilter{Seq: seqs[0]})
					if err != nil {
						return err
					}
					return tx.Settle(ds[0], journal.Done, "ended")
				}); err != nil {
					w.Fatal(err)
				}
				d := x.take("k/1")
				if got := x.cancelled(); !slices.Equal(got, []string{d.GetToken()}) {
					w.Errorf("cancelled are %v", got)
				}
				late := []*busv1.Effect{publishEffect("c.d", "late")}
				x.answer(d, &busv1.Outcome{Kind: end, RetryAfterMs: 1000, Effects: late})
				x.wantHeld("k/2")
				time.Sleep(time.Minute)
				if d := w.wantState(seqs[0], journal.Done); d.Reason != "ended" || len(w.events("c.d")) > 0 {
					w.Errorf("the one that was ended is %+v", d)
				}
				x.ack("k/2")
				x.wantHeld()
			})
		})
	}
}

// TestCallLeases are void with their row, their generation or their release.
func TestCallLeases(t *testing.T) {
	inWorld(t, func(w *world) {
		tool := &bus.Actor{ID: "tool", Generation: 4} // it has no subscription
		call := &journal.Call{Session: 1, Turn: 1}
		if err := w.Do(func(tx *bus.Tx) error { return tx.PutCall(call) }); err != nil {
			w.Fatal(err)
		}
		turn := &bus.Lease{Event: &busv1.Event{Id: "e1"}}
		commit := func(l *bus.Lease) error {
			return w.DoAs(tool, l, func(tx *bus.Tx) error { _, err := tx.KVPut("tool", "k", nil); return err })
		}
		l := w.LeaseCall(tool, turn, turn.Event, call.ID)
		if err := commit(l); err != nil {
			w.Error(err)
		}
		if _, err := w.Lease(tool, l.Token); err != nil {
			w.Error(err)
		}
		if _, err := w.Lease(&bus.Actor{ID: "other", Generation: 4}, l.Token); err == nil {
			w.Error("another extension has the token")
		}
		call.State = journal.CallClosed
		if err := w.Do(func(tx *bus.Tx) error { return tx.PutCall(call) }); err != nil {
			w.Fatal(err)
		}
		wantError(w, commit(l), contract.ErrStale)
		w.Release(l)
		alone, gone := w.LeaseCall(tool, &bus.Lease{}, nil, 0), w.LeaseCall(tool, &bus.Lease{}, nil, 0)
		if err := commit(alone); err != nil {
			w.Error(err)
		}
		w.Release(alone)
		wantError(w, commit(alone), contract.ErrStale)
		w.Gone("tool", 4, "ended", false)
		wantError(w, commit(gone), contract.ErrStale)
		_, err := w.Lease(tool, gone.Token)
		wantError(w, err, contract.ErrStale)
	})
}
