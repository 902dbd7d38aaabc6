package bus_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

func TestRetryIsNotCounted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		seq := w.publish("a.b", "k/1", "k/2")[0]
		for range 20 { // more than may be delivered
			x.retry("k/1", time.Minute)
			time.Sleep(59 * time.Second)
			x.wantHeld() // it holds its lane
			time.Sleep(2 * time.Second)
			x.wantHeld("k/1")
		}
		x.retry("k/1", 0)
		x.wantHeld("k/1")
		x.retry("k/1", 500*time.Millisecond)
		x.wantHeld()
		time.Sleep(500 * time.Millisecond)
		if d := x.take("k/1"); d.GetAttempt() != 1 {
			w.Errorf("after retries alone it is attempt %d", d.GetAttempt())
		}
		w.wantState(seq, journal.Pending)
	})
}

// TestRetryOutlivesKernel has the waiting time of a retry go on after a restart.
func TestRetryOutlivesKernel(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		w.publish("a.b", "k/1", "l/1", "/1")
		x.retry("k/1", time.Hour)
		x.fail("l/1")
		x.retry("/1", time.Hour)
		x.wantHeld()
		w.crash()
		x = w.attach("x", 10)
		x.wantHeld()
		time.Sleep(time.Second)
		x.wantHeld("l/1")
		time.Sleep(time.Hour)
		x.wantHeld("k/1", "l/1", "/1")
	})
}

// TestMaxDeliver fails until the delivery dies. Its death is an event, which
// dies silently itself.
func TestMaxDeliver(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		w.subscribe("mourner", on("system.delivery.dead")...)
		x, mourner := w.attach("x", 10), w.attach("mourner", 10)
		seq := w.publish("a.b", "k/1", "k/2")[0]
		var waits []time.Duration
		for range plain.MaxDeliver - 1 {
			x.fail("k/1")
			before := time.Now()
			for len(x.holds()) == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			waits = append(waits, time.Since(before))
		}
		x.fail("k/1")
		x.wantHeld("k/2") // a dead one frees its lane
		if waits[0] < 300*time.Millisecond || waits[1] <= waits[0] {
			w.Errorf("the waits between attempts are %v: they have to grow", waits)
		}
		d := w.wantState(seq, journal.Dead)
		if d.Attempts != 3 || !strings.Contains(d.Reason, "failed 3 times; the last time: failed") || d.SettledAt == 0 {
			w.Errorf("the dead delivery is %+v", d)
		}
		if want := []string{"k/1#1", "k/1#2", "k/1#3", "k/2#1"}; !slices.Equal(x.seen, want) {
			w.Errorf("deliveries came as %v, want %v", x.seen, want)
		}
		var told contract.DeliveryDead
		for i := range plain.MaxDeliver {
			death := mourner.take("system.delivery.dead")
			if err := json.Unmarshal(death.GetEvent().GetPayload(), &told); err != nil {
				w.Fatal(err)
			}
			if e := death.GetEvent(); e.GetCausationId() != journal.EventID(seq) || e.GetHop() != 1 ||
				int(death.GetAttempt()) != i+1 {
				w.Errorf("the death is told as %v", death)
			}
			mourner.answer(death, &busv1.Outcome{Kind: busv1.Outcome_KIND_FAIL})
			time.Sleep(time.Minute)
		}
		if want := (contract.DeliveryDead{EventID: journal.EventID(seq), Topic: "a.b", Extension: "x", Attempts: 3, Reason: d.Reason}); told != want {
			w.Errorf("the death is told as %+v, want %+v", told, want)
		}
		if n := len(w.events("system.delivery.dead")); n != 1 {
			w.Errorf("there are %d events of deaths, want one: the death of such an event is silent", n)
		}
	})
}

func TestDrop(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		seq := w.publish("a.b", "k/1", "k/2")[0]
		x.answer(x.take("k/1"), &busv1.Outcome{
			Kind: busv1.Outcome_KIND_DROP, Reason: "makes no sense", Effects: []*busv1.Effect{publishEffect("c.d", "said")},
		})
		x.wantHeld("k/2")
		if d := w.wantState(seq, journal.Dead); d.Reason != "makes no sense" || d.Attempts != 1 {
			w.Errorf("the dropped delivery is %+v", d)
		}
		if len(w.events("c.d")) != 1 || len(w.events("system.delivery.dead")) != 1 {
			w.Error("the effects of a drop and its death are not both there")
		}
	})
}

// The load of an extension says since when its oldest handler has been at work.
func TestLoadSince(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		since := func() (at int64) {
			for _, l := range w.Loads() {
				if l.Extension == "x" {
					at = l.Since
				}
			}
			return at
		}
		began := time.Now().UnixMicro()
		w.publish("a.b", "k/1")
		x.wantHeld("k/1")
		time.Sleep(5 * time.Second)
		w.publish("a.b", "l/1")
		x.wantHeld("k/1", "l/1")
		if got := since(); got != began {
			w.Errorf("the oldest handler began at %d, want %d", got, began)
		}
		x.ack("k/1")
		x.ack("l/1")
		x.wantHeld()
		if got := since(); got != 0 {
			w.Errorf("a handler is at work since %d", got)
		}
	})
}

// TestMaxAge buries what is not handled in time, whether it was tried, waited
// for a retry, or could not be handed out at all.
func TestMaxAge(t *testing.T) {
	inWorld(t, func(w *world) {
		s := on("a.b")[0]
		s.MaxAge = time.Hour
		w.subscribe("x", s)
		x := w.attach("x", 10)
		retried, waiting := w.publish("a.b", "k/1")[0], w.publish("a.b", "k/2")[0]
		x.retry("k/1", 50*time.Minute)
		x.wantHeld()
		time.Sleep(51 * time.Minute)
		x.wantHeld("k/1")
		x.retry("k/1", time.Minute)
		x.gone(true)
		time.Sleep(10 * time.Minute)
		young := w.publish("a.b", "k/3")[0]
		w.wantState(young, journal.Pending)
		x = w.attach("x", 10)
		x.wantHeld("k/3") // the others are too old to be tried
		for _, seq := range []int64{retried, waiting} {
			if d := w.wantState(seq, journal.Dead); !strings.Contains(d.Reason, "not handled within 1h0m0s") || d.Attempts != 0 {
				w.Errorf("the delivery that got too old is %+v", d)
			}
		}
		time.Sleep(61 * time.Minute)
		x.take("k/3") // while it is handled it is nobody's to bury
	})
}

// TestMaxAgeWithoutHandler buries what is too old although nobody is there to
// take it: it does not wait for its extension to come back.
func TestMaxAgeWithoutHandler(t *testing.T) {
	inWorld(t, func(w *world) {
		s := on("a.b")[0]
		s.MaxAge = time.Hour
		w.subscribe("x", s)
		seqs := w.publish("a.b", "k/1", "k/2", "/1")
		time.Sleep(50 * time.Minute)
		young := w.publish("a.b", "k/3")[0]
		time.Sleep(12 * time.Minute)
		for _, seq := range seqs {
			w.wantState(seq, journal.Dead)
		}
		w.wantState(young, journal.Pending)
	})
}

// TestAckWait ends the context of a handler that takes too long, and has its
// process restarted when that does not help. Only then is the lane given out
// again, and the old token is worth nothing.
func TestAckWait(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		seq := w.publish("a.b", "k/1")[0]
		old := x.take("k/1")
		if left := time.Until(time.UnixMicro(old.GetDeadlineUs())); left.Round(time.Second) != 30*time.Second {
			w.Errorf("the deadline is %v away", left)
		}
		time.Sleep(29 * time.Second)
		w.publish("a.b", "l/1") // has time of its own
		x.wantHeld("l/1")
		if len(x.cancelled()) > 0 {
			w.Error("cancelled before its time")
		}
		time.Sleep(2 * time.Second)
		x.wantHeld("l/1")
		if !slices.Equal(x.cancelled(), []string{old.GetToken()}) {
			w.Errorf("after the ack wait cancelled are %v, want the one token", x.cancelled())
		}
		x.ack("l/1")
		time.Sleep(11 * time.Second)
		x.wantHeld()
		if want := []string{fmt.Sprint("x", x.actor.Generation)}; !slices.Equal(w.stuck, want) {
			w.Errorf("stuck are %v, want %v", w.stuck, want)
		}
		time.Sleep(time.Minute)
		x.wantHeld()
		if len(w.stuck) != 1 {
			w.Errorf("stuck was said again: %v", w.stuck)
		}
		x.gone(false)
		next := w.attach("x", 10)
		time.Sleep(2 * time.Second)
		d := next.take("k/1")
		if d.GetAttempt() != 2 || d.GetToken() == old.GetToken() {
			w.Errorf(
				"after the restart it is attempt %d with the same token: %t",
				d.GetAttempt(),
				d.GetToken() == old.GetToken(),
			)
		}
		// The old generation speaks up: nothing of it counts.
		x.answer(old, &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK, Effects: []*busv1.Effect{publishEffect("c.d", "late")}})
		_, err := x.commit(&busv1.Commit{Lane: old.GetToken(), Effects: []*busv1.Effect{publishEffect("c.d", "late")}})
		wantError(w, err, contract.ErrStale)
		// Nor does it under the new token.
		x.answer(d, &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK})
		_, err = x.commit(&busv1.Commit{Lane: d.GetToken(), Effects: []*busv1.Effect{publishEffect("c.d", "late")}})
		wantError(w, err, contract.ErrStale)
		if w.wantState(seq, journal.Pending); len(w.events("c.d")) > 0 {
			w.Error("an effect of a stale token was committed")
		}
		next.answer(d, &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK})
		time.Sleep(time.Second)
		w.wantState(seq, journal.Done)
	})
}

// TestHandlerThatAnswersLate is cancelled and answers within the grace: its
// answer counts, and its process is left alone.
func TestHandlerThatAnswersLate(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		seq := w.publish("a.b", "k/1")[0]
		x.wantHeld("k/1")
		time.Sleep(35 * time.Second)
		x.ack("k/1", publishEffect("c.d", "done"))
		time.Sleep(time.Minute)
		if w.wantState(seq, journal.Done); len(w.stuck) > 0 || len(w.events("c.d")) != 1 {
			w.Errorf("stuck: %v", w.stuck)
		}
	})
}

// TestOnlyTheFirstAnswerCounts sends several answers under one token.
func TestOnlyTheFirstAnswerCounts(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		w.publish("a.b", "k/1", "k/2", "k/3")
		token := x.take("k/1").GetToken()
		ack := &busv1.Outcome{
			Token:   token,
			Kind:    busv1.Outcome_KIND_ACK,
			Effects: []*busv1.Effect{publishEffect("c.d", "once")},
		}
		retry := &busv1.Outcome{Token: token, Kind: busv1.Outcome_KIND_RETRY}
		fail := &busv1.Outcome{Token: token, Kind: busv1.Outcome_KIND_FAIL}
		bare := &busv1.Outcome{Token: token, Kind: busv1.Outcome_KIND_ACK}
		w.Outcomes(x.actor, []*busv1.Outcome{ack, retry, fail, bare, ack})
		x.wantHeld("k/2")
		time.Sleep(time.Minute)
		x.wantHeld("k/2")
		if len(w.events("c.d")) != 1 {
			w.Error("several answers were committed")
		}
	})
}

// TestCrashesAreCounted counts attempts that a handler had taken when its
// process ended; not those that were stopped on purpose or never taken.
func TestCrashesAreCounted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		seq := w.publish("a.b", "k/1")[0]
		for range 5 {
			w.Attach(&bus.Actor{ID: "x", Generation: 1}).Credit(1) // never taken
			w.Gone("x", 1, "crashed", false)
		}
		for range 5 {
			x := w.attach("x", 10)
			x.wantHeld("k/1")
			x.gone(true)
		}
		w.crash()
		for attempt := range plain.MaxDeliver {
			x := w.attach("x", 10)
			time.Sleep(time.Minute)
			if d := x.take("k/1"); int(d.GetAttempt()) != attempt+1 {
				w.Errorf("after %d crashes it is attempt %d", attempt, d.GetAttempt())
			}
			x.gone(false)
		}
		if d := w.wantState(seq, journal.Dead); !strings.Contains(d.Reason, "it ended") {
			w.Errorf("after %d crashes it is %+v", plain.MaxDeliver, d)
		}
	})
}

// TestConflict runs the handler again when a version was not the one it saw,
// without counting that, and kills what can never be right.
func TestConflict(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		seqs := w.publish("a.b", "k/1", "l/1", "m/1", "n/1")
		zero, one := int64(0), int64(9)
		for range 10 {
			x.ack("k/1", publishEffect("c.d", "x"), effect(&busv1.Put{Key: "key", Version: &one}))
			time.Sleep(time.Second)
			x.wantHeld("k/1", "l/1", "m/1", "n/1")
		}
		if d := x.take("k/1"); d.GetAttempt() != 1 {
			w.Errorf("conflicts were counted: it is attempt %d", d.GetAttempt())
		} else {
			x.answer(
				d,
				&busv1.Outcome{
					Kind:    busv1.Outcome_KIND_ACK,
					Effects: []*busv1.Effect{effect(&busv1.Put{Key: "key", Version: &zero})},
				},
			)
		}
		x.ack("l/1", publishEffect("c.d", "x"), publishEffect("user.message", "x"), publishEffect("model.usage", "x"))
		x.ack("m/1", publishEffect("c.d", strings.Repeat("x", contract.MaxPayload)))
		x.ack("n/1", effect(&busv1.Publish{Topic: "c.d", Payload: []byte("no json")}))
		w.wantState(seqs[0], journal.Done)
		for i, why := range []string{"permissions: {publish: [user.message]}", "the limit is 1048576", "not JSON"} {
			if d := w.wantState(seqs[i+1], journal.Dead); !strings.Contains(d.Reason, why) || d.Attempts != 1 {
				w.Errorf("the refused delivery is %+v, want the reason %q", d, why)
			}
		}
		if n := len(w.events("c.d")); n != 0 {
			w.Errorf("%d effects of refused commits are there", n)
		}
	})
}

// TestStoreThatRefuses has every kind of answer meet a store that takes nothing
// for a while: nothing is lost, and nothing is counted twice.
func TestStoreThatRefuses(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe(
			"x",
			append(
				on("a.b"),
				bus.Subscription{Pattern: "channel.send.x", Ordered: true, AckWait: 30 * time.Second, MaxDeliver: 3},
			)...)
		x := w.attach("x", 100)
		seqs := w.publish("a.b", "bare/1", "effects/1", "fail/1", "retry/1", "drop/1", "held/1")
		sent := w.publish("channel.send.x", "sent/1", "unsent/1", "unknown/1")
		x.holds()
		w.store.full.Store(true)
		effects := func() *busv1.Effect { return publishEffect("c.d", "done") }
		x.ack("bare/1")
		x.ack("effects/1", effects())
		x.fail("fail/1")
		x.retry("retry/1", time.Second)
		x.answer(x.take("drop/1"), &busv1.Outcome{Kind: busv1.Outcome_KIND_DROP})
		x.ack("sent/1", effect(&busv1.Receipt{ProviderId: "p"}))
		x.fail("unsent/1")
		x.answer(x.take("unknown/1"), &busv1.Outcome{Kind: busv1.Outcome_KIND_UNKNOWN})
		_, err := x.commit(&busv1.Commit{Effects: []*busv1.Effect{effects()}})
		wantError(w, err, contract.ErrFull)
		if err := w.Subscribe("y", on("a.b")); err == nil {
			w.Error("a full store took a subscription")
		}
		time.Sleep(700 * time.Millisecond)
		w.store.full.Store(false)
		time.Sleep(10 * time.Second)
		x.ack("effects/1", effects())
		if d := x.take("fail/1"); d.GetAttempt() > 2 {
			w.Errorf("one failure was counted as %d", d.GetAttempt()-1)
		}
		x.ack("retry/1")
		x.answer(x.take("drop/1"), &busv1.Outcome{Kind: busv1.Outcome_KIND_DROP})
		if d := x.take("unknown/1"); !d.GetUncertain() {
			w.Error("a send whose outcome is unknown is repeated as if it were new")
		}
		x.take("unsent/1")
		x.wantHeld("held/1")
		time.Sleep(time.Second)
		for i, want := range []journal.DeliveryState{journal.Done, journal.Done, journal.Pending, journal.Done, journal.Dead, journal.Pending} {
			w.wantState(seqs[i], want)
		}
		if d := w.wantState(sent[0], journal.Done); d.ProviderID != "p" {
			w.Errorf("the receipt of what was sent once is %+v", d)
		}
		w.crash()
		x = w.attach("x", 100)
		time.Sleep(time.Minute)
		x.wantHeld("fail/1", "held/1", "unsent/1", "unknown/1")
	})
}
