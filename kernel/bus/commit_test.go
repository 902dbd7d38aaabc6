package bus_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

func ackOutcome() *busv1.Outcome { return &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK} }
func dropOutcome() *busv1.Outcome {
	return &busv1.Outcome{Kind: busv1.Outcome_KIND_DROP, Reason: "dropped"}
}

func seqsOf(events []*busv1.Event) (seqs []int64) {
	for _, e := range events {
		seqs = append(seqs, e.GetSeq())
	}
	return seqs
}

// TestCommit is all or nothing, and tells what the kernel assigned.
func TestCommit(t *testing.T) {
	inWorld(t, func(w *world) {
		x := w.attach("x", 10)
		zero, stale := int64(0), int64(77)
		put := func(version *int64) *busv1.Effect {
			return effect(&busv1.Put{Key: "k", Value: []byte("v"), Version: version})
		}
		receipt, err := x.commit(
			&busv1.Commit{Effects: []*busv1.Effect{publishEffect("a.b", "one"), put(&zero), publishEffect("a.b", "two")}},
		)
		if err != nil {
			w.Fatal(err)
		}
		version := receipt.GetResults()[1].GetVersion()
		if ids := receipt.GetResults(); ids[0].GetEventId() != "e1" || ids[2].GetEventId() != "e2" || version == 0 {
			w.Errorf("the receipt is %v", receipt)
		}
		for name, c := range map[string]struct {
			effect *busv1.Effect
			want   error
		}{
			"a version that is not current": {put(&stale), contract.ErrConflict},
			"a key that must not exist":     {put(&zero), contract.ErrConflict},
			"deleting another version":      {effect(&busv1.Delete{Key: "k", Version: &stale}), contract.ErrConflict},
			"an empty key":                  {effect(&busv1.Put{}), contract.ErrInvalid},
			"a long key":                    {effect(&busv1.Put{Key: strings.Repeat("k", 1025)}), contract.ErrInvalid},
			"a large value":                 {effect(&busv1.Put{Key: "k", Value: make([]byte, contract.MaxPayload+1)}), contract.ErrTooLarge},
			"a long key of an event":        {effect(&busv1.Publish{Topic: "a.b", Key: strings.Repeat("k", 1025)}), contract.ErrTooLarge},
			"a long dedupe key":             {effect(&busv1.Publish{Topic: "a.b", DedupeKey: strings.Repeat("k", 1025)}), contract.ErrTooLarge},
			"a large payload":               {publishEffect("a.b", "/"+strings.Repeat("x", contract.MaxPayload)), contract.ErrTooLarge},
			"a payload that is no JSON":     {effect(&busv1.Publish{Topic: "a.b", Payload: []byte("{")}), contract.ErrInvalid},
			"no payload":                    {effect(&busv1.Publish{Topic: "a.b"}), contract.ErrInvalid},
			"an event that does not exist":  {effect(&busv1.Withdraw{EventId: "e99"}), contract.ErrNotFound},
			"no kind":                       {&busv1.Effect{}, contract.ErrInvalid},
		} {
			_, err := x.commit(&busv1.Commit{Effects: []*busv1.Effect{publishEffect("a.b", "never"), c.effect}})
			if err == nil {
				w.Errorf("%s: accepted", name)
			}
			wantError(w, err, c.want)
		}
		if _, err := x.commit(
			&busv1.Commit{Effects: []*busv1.Effect{put(&version), effect(&busv1.Delete{Key: "k"}), put(&zero)}},
		); err != nil {
			w.Errorf("with the right versions: %v", err)
		}
		if n := len(w.events("a.b")); n != 2 {
			w.Errorf("there are %d events, want the 2 that were accepted", n)
		}
		largest := publishEffect("a.b", "/"+strings.Repeat("x", contract.MaxPayload-3))
		if _, err := x.commit(&busv1.Commit{Effects: []*busv1.Effect{largest}}); err != nil {
			w.Errorf("the largest payload: %v", err)
		}
	})
}

// An event that the hook refuses leaves nothing behind, and the rest of its commit is
// kept.
func TestARefusedEventIsNotStored(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		refused := effect(&busv1.Publish{Topic: "a.b", Payload: []byte(`"k/1"`), DedupeKey: "once"})
		w.router.set(func() { w.router.refused = "a.b" })
		receipt, err := x.commit(&busv1.Commit{Effects: []*busv1.Effect{
			refused, effect(&busv1.Put{Key: "offset", Value: []byte("7")}), publishEffect("c.d", "kept"),
		}})
		if err != nil || receipt.GetResults()[0].GetEventId() != "" || receipt.GetResults()[2].GetEventId() != "e1" {
			w.Errorf("the receipt is %v, %v", receipt, err)
		}
		if n := len(w.events("a.b")); n != 0 {
			w.Errorf("%d refused events are stored", n)
		}
		x.wantHeld()
		w.router.set(func() { w.router.refused = "" })
		receipt, err = x.commit(&busv1.Commit{Effects: []*busv1.Effect{refused}})
		if err != nil || receipt.GetResults()[0].GetDuplicate() {
			w.Errorf("the dedupe key of a refused event is taken: %v, %v", receipt, err)
		}
	})
}

// TestCommitID returns the first receipt, whatever became of the lane meanwhile.
func TestCommitID(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x, other := w.attach("x", 10), w.attach("other", 10)
		w.publish("a.b", "k/1")
		d := x.take("k/1")
		c := &busv1.Commit{Id: "c1", Lane: d.GetToken(), Effects: []*busv1.Effect{publishEffect("c.d", "once")}}
		first, err := x.commit(c)
		if err != nil {
			w.Fatal(err)
		}
		x.answer(d, ackOutcome())
		w.events("*")
		again, err := x.commit(c)
		if err != nil || again.GetResults()[0].GetEventId() != first.GetResults()[0].GetEventId() {
			w.Errorf("repeated after its lane has ended: %v, %v; the first was %v", again, err, first)
		}
		w.crash()
		x.w, other.w = w, w
		if again, err = x.commit(c); err != nil || again.GetResults()[0].GetEventId() != first.GetResults()[0].GetEventId() {
			w.Errorf("repeated after a restart: %v, %v", again, err)
		}
		c.Lane = ""
		if theirs, err := other.commit(
			c,
		); err != nil ||
			theirs.GetResults()[0].GetEventId() == first.GetResults()[0].GetEventId() {
			w.Errorf("another extension's commit of the same id: %v, %v", theirs, err)
		}
		// One that failed is not remembered.
		bad := int64(5)
		failing := &busv1.Commit{Id: "c2", Effects: []*busv1.Effect{effect(&busv1.Put{Key: "k", Version: &bad})}}
		_, err = x.commit(failing)
		wantError(w, err, contract.ErrConflict)
		if _, err := x.commit(&busv1.Commit{Id: "c2", Effects: []*busv1.Effect{effect(&busv1.Put{Key: "k"})}}); err != nil {
			w.Errorf("the id of a commit that failed: %v", err)
		}
		if n := len(w.events("c.d")); n != 2 {
			w.Errorf("%d events, want one of each extension", n)
		}
	})
}

func TestDedupe(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("s", on("a.b")...)
		x, y, s := w.attach("x", 10), w.attach("y", 10), w.attach("s", 10)
		publish := func(from *extension, key string) *busv1.EffectResult {
			r, err := from.commit(
				&busv1.Commit{
					Effects: []*busv1.Effect{effect(&busv1.Publish{Topic: "a.b", Payload: []byte(`"/` + key + `"`), DedupeKey: key})},
				},
			)
			if err != nil {
				w.Fatal(err)
			}
			return r.GetResults()[0]
		}
		first := publish(x, "k")
		for range 2 {
			if again := publish(x, "k"); again.GetEventId() != first.GetEventId() || !again.GetDuplicate() {
				w.Errorf("published again: %v, the first was %v", again, first)
			}
		}
		if other := publish(y, "k"); other.GetDuplicate() || first.GetDuplicate() {
			w.Errorf("the key of another source: %v", other)
		}
		s.wantHeld("/k", "/k") // one of each source
	})
}

// TestCausation gives what is published under a lane its cause, and what is not
// none. A chain ends at the limit of hops, and what dies there is told of.
func TestCausation(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		told := 0
		w.router.set(func() {
			w.router.died = func(tx *bus.Tx, _ *journal.Delivery, _ *busv1.Event) error {
				told++
				_, err := tx.Emit("system.user.notify", "", "it died")
				return err
			}
		})
		x := w.attach("x", 10)
		root := w.publish("a.b", "k/0")[0]
		for hop := range contract.MaxHops {
			x.ack(fmt.Sprint("k/", hop), publishEffect("a.b", fmt.Sprint("k/", hop+1)))
		}
		events := w.events("a.b")
		for i, e := range events[1:] {
			if int(e.GetHop()) != i+1 || e.GetCorrelationId() != journal.EventID(root) ||
				e.GetCausationId() != events[i].GetId() {
				w.Errorf("event %d of the chain is %v", i+1, e)
			}
		}
		last := fmt.Sprint("k/", contract.MaxHops)
		seq := events[len(events)-1].GetSeq()
		x.ack(last, publishEffect("a.b", "k/too far"))
		if d := w.wantState(seq, journal.Dead); !strings.Contains(d.Reason, "without a turn of a model") {
			w.Errorf("at the limit of hops it is %+v", d)
		}
		if told != 1 || len(w.events("system.user.notify")) != 1 {
			w.Errorf("the router was told of %d deaths", told)
		}
		if n := len(w.events("system.delivery.dead")); n != 0 {
			w.Errorf("what dies by the cap publishes %d events", n)
		}
	})
}

// TestRouterRefusesDeath has what follows from a death be impossible: the
// delivery dies all the same.
func TestRouterRefusesDeath(t *testing.T) {
	inWorld(t, func(w *world) {
		w.router.set(func() {
			w.router.died = func(*bus.Tx, *journal.Delivery, *busv1.Event) error {
				return fmt.Errorf("%w: cannot be told", contract.ErrInvalid)
			}
		})
		s := on("a.b")
		s[0].MaxDeliver, s[0].MaxAge = 1, time.Hour
		w.subscribe("x", s...)
		x := w.attach("x", 10)
		seqs := w.publish("a.b", "fail/1", "drop/1", "gone/1", "old/1", "fail/2")
		x.fail("fail/1")
		x.answer(x.take("drop/1"), dropOutcome())
		x.retry("old/1", 30*time.Minute)
		x.wantHeld("fail/2", "gone/1")
		x.ack("fail/2")
		x.gone(false)
		time.Sleep(2 * time.Hour)
		for i := range 4 {
			w.wantState(seqs[i], journal.Dead)
		}
	})
}

// TestRouterFollowsInTheSameCommit has the router's events, and a failure of
// its store, be part of the accepting commit.
func TestRouterFollowsInTheSameCommit(t *testing.T) {
	inWorld(t, func(w *world) {
		w.router.set(func() {
			w.router.accept = func(tx *bus.Tx, e *busv1.Event) error {
				if e.GetTopic() != "a.b" {
					return nil
				}
				var name string
				if err := json.Unmarshal(e.GetPayload(), &name); err != nil || name == "refused" {
					return fmt.Errorf("%w: by the router", contract.ErrInvalid)
				}
				_, err := tx.Emit("derived.event", "", name)
				return err
			}
		})
		w.publish("a.b", "fine")
		if err := w.Do(func(tx *bus.Tx) error { _, err := tx.Emit("a.b", "", "refused"); return err }); err == nil {
			w.Error("the router's failure was lost")
		}
		events := w.events("*")
		if len(events) != 2 || events[1].GetTopic() != "derived.event" || events[1].GetCausationId() != events[0].GetId() ||
			events[1].GetHop() != 1 {
			w.Errorf("the events are %v", events)
		}
	})
}

// TestLazyAcks have the lane go on before the acknowledgement is durable, which
// comes within the delay.
func TestLazyAcks(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		x := w.attach("x", 10)
		seq := w.publish("a.b", "k/1", "k/2")[0]
		settled := make(chan journal.Delivery, 1)
		w.OnSettled(seq, func(d journal.Delivery) { settled <- d })
		before := time.Now()
		x.ack("k/1")
		x.wantHeld("k/2")
		if ds := w.deliveries(seq); ds[0].State != journal.Pending || time.Since(before) != 0 {
			w.Errorf("before the delay the delivery is %s, %v later", ds[0].State, time.Since(before))
		}
		if d := <-settled; d.State != journal.Done || time.Since(before) > journal.LazyDelay {
			w.Errorf("told after %v is %+v", time.Since(before), d)
		}
		w.wantState(seq, journal.Done)
	})
}
