package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// testSeq numbers events without visible gaps, and never uses a number twice: not
// after a failure, not after pruning, not after reopening.
func testSeq(t *testing.T, open Open) {
	f := start(t, open)
	f.do(func(tx journal.Tx) {
		for want := range int64(5) {
			if seq := appendEvent(tx, "a.b"); seq != want+1 {
				t.Errorf("event %d has seq %d", want+1, seq)
			}
		}
	})
	_ = journal.Do(t.Context(), f, func(tx journal.Tx) error {
		appendEvent(tx, "a.b")
		return errRefused
	})
	f.do(func(tx journal.Tx) {
		for more := true; more; {
			more = ok(tx.Prune(epoch.Add(time.Hour).UnixMicro(), epoch.Add(time.Hour).UnixMicro(), 2))
		}
	})
	f.reopen()
	f.do(func(tx journal.Tx) {
		if last := ok(tx.LastSeq()); last != 5 {
			t.Errorf("after pruning and reopening the last seq is %d, want 5", last)
		}
		if seq := appendEvent(tx, "a.b"); seq != 6 {
			t.Errorf("the next event has seq %d, want 6", seq)
		}
	})
}

func testEvents(t *testing.T, open Open) {
	f := start(t, open)
	full := &busv1.Event{
		Topic: "full.event", Key: "k", Source: "s", Payload: []byte(`{"a":1}`), CorrelationId: "e9977", CausationId: "e78",
		Hop: 3, DedupeKey: "d", CreatedAtUs: epoch.UnixMicro(),
	}
	f.do(func(tx journal.Tx) {
		for i := range 120 {
			e := event("a.b", time.Duration(i))
			if i%3 == 0 {
				e.Topic = "a.c.d"
			}
			must(tx.AppendEvent(e))
		}
		must(tx.AppendEvent(full))
	})
	if full.GetSeq() != 121 || full.GetId() != journal.EventID(121) {
		t.Errorf("the appended event has seq %d and id %q", full.GetSeq(), full.GetId())
	}
	f.view(func(r journal.Reader) {
		if diff := cmp.Diff(full, ok(r.Event(121)), protocmp.Transform()); diff != "" {
			t.Errorf("the event changed (-stored +read):\n%s", diff)
		}
		if e := ok(r.Event(122)); e != nil {
			t.Errorf("an event that does not exist is %v", e)
		}
		for name, c := range map[string]struct {
			filter journal.EventFilter
			want   []int64
		}{
			"newest first":  {journal.EventFilter{Limit: 3}, []int64{121, 120, 119}},
			"oldest first":  {journal.EventFilter{Limit: 3, Ascending: true}, []int64{1, 2, 3}},
			"between":       {journal.EventFilter{After: 5, Before: 8}, []int64{7, 6}},
			"after":         {journal.EventFilter{After: 118, Ascending: true}, []int64{119, 120, 121}},
			"topic":         {journal.EventFilter{Topic: "a.c.d", Limit: 2, Ascending: true}, []int64{1, 4}},
			"prefix":        {journal.EventFilter{Topic: "a.c.*", Limit: 2, Ascending: true}, []int64{1, 4}},
			"all topics":    {journal.EventFilter{Topic: "*", Limit: 1}, []int64{121}},
			"no such topic": {journal.EventFilter{Topic: "a.c"}, nil},
			"correlation":   {journal.EventFilter{Correlation: "e9977"}, []int64{121}},
			"root":          {journal.EventFilter{Correlation: "e9"}, []int64{9}},
		} {
			if got := seqs(ok(r.Events(c.filter))); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
		if n := len(ok(r.Events(journal.EventFilter{}))); n != 100 {
			t.Errorf("without a limit there are %d events, want 100", n)
		}
	})
}

func seqs(events []*busv1.Event) (seqs []int64) {
	for _, e := range events {
		seqs = append(seqs, e.GetSeq())
	}
	return seqs
}

func testDedupe(t *testing.T, open Open) {
	f := start(t, open)
	f.do(func(tx journal.Tx) {
		for _, source := range []string{"one", "two"} {
			e := event("a.b", 0)
			e.Source, e.DedupeKey = source, "key"
			must(tx.AppendEvent(e))
		}
		must(tx.AppendEvent(event("a.b", 0))) // without a key: as many as one likes
		must(tx.AppendEvent(event("a.b", 0)))
	})
	err := journal.Do(t.Context(), f, func(tx journal.Tx) error {
		e := event("a.b", 0)
		e.Source, e.DedupeKey = "one", "key"
		return tx.AppendEvent(e)
	})
	if err == nil {
		t.Error("a source used a dedupe key twice")
	}
	f.view(func(r journal.Reader) {
		for source, want := range map[string]int64{"one": 1, "two": 2, "three": 0} {
			if seq, found, err := r.EventByDedupe(source, "key"); err != nil || seq != want || found != (want > 0) {
				t.Errorf("the event of %s is %d (%t, %v), want %d", source, seq, found, err, want)
			}
		}
		if _, found, _ := r.EventByDedupe("test", ""); found {
			t.Error("an event without a dedupe key is found by none")
		}
	})
	// The key lives as long as the event.
	f.do(func(tx journal.Tx) {
		ok(tx.Prune(epoch.Add(1).UnixMicro()+1, epoch.UnixMicro()+1, 100))
		e := event("a.b", 0)
		e.Source, e.DedupeKey = "one", "key"
		must(tx.AppendEvent(e))
	})
}

// testPrune keeps pending, recently dead and young events.
func testPrune(t *testing.T, open Open) {
	f := start(t, open)
	deliver := func(tx journal.Tx, seq int64, state journal.DeliveryState, settled time.Duration) {
		must(tx.AddDelivery(journal.Delivery{
			Seq: seq, Subscription: 1, State: state, SettledAt: epoch.Add(settled).UnixMicro(), Key: fmt.Sprint(seq),
		}))
	}
	f.do(func(tx journal.Tx) {
		for i := range 12 { // one every hour
			must(tx.AppendEvent(event("a.b", time.Duration(i)*time.Hour)))
		}
		deliver(tx, 1, journal.Done, time.Hour)
		deliver(tx, 2, journal.Pending, 0)
		deliver(tx, 3, journal.InFlight, 0)
		deliver(tx, 4, journal.Dead, 4*time.Hour)  // long ago
		deliver(tx, 5, journal.Dead, 11*time.Hour) // lately, though its event is old
		deliver(tx, 6, journal.Done, 7*time.Hour)
		must(tx.AddDelivery(journal.Delivery{Seq: 6, Subscription: 2}))
		deliver(tx, 8, journal.Done, 8*time.Hour)
	})
	before, deadBefore := epoch.Add(9*time.Hour).UnixMicro(), epoch.Add(6*time.Hour).UnixMicro()
	for range 2 { // in batches of 2, then nothing is left
		rounds := 0
		for more := true; more; rounds++ {
			f.do(func(tx journal.Tx) { more = ok(tx.Prune(before, deadBefore, 2)) })
		}
		f.view(func(r journal.Reader) {
			got := seqs(ok(r.Events(journal.EventFilter{Ascending: true})))
			if want := []int64{2, 3, 5, 6, 10, 11, 12}; !slices.Equal(got, want) {
				t.Errorf("after %d rounds of pruning there are %v, want %v", rounds, got, want)
			}
			if ds := ok(r.Deliveries(journal.DeliveryFilter{})); len(ds) != 5 {
				t.Errorf("pruning leaves %d deliveries, want the 5 of events that stay: %+v", len(ds), ds)
			}
		})
	}
	f.do(func(tx journal.Tx) { ok(tx.Prune(epoch.Add(99*time.Hour).UnixMicro(), deadBefore, 100)) })
	f.view(func(r journal.Reader) {
		if last := ok(r.LastSeq()); last != 12 {
			t.Errorf("the newest event was pruned: the last seq is %d", last)
		}
	})
}

// testPruneBehind has many kept events before the removable ones, more than one call
// reads.
func testPruneBehind(t *testing.T, open Open) {
	f := start(t, open)
	const all, waiting, limit = 200, 120, 3
	f.do(func(tx journal.Tx) {
		for i := range all {
			must(tx.AppendEvent(event("a.b", 0)))
			d := journal.Delivery{Seq: int64(i + 1), Subscription: 1, State: journal.Done}
			if i < waiting {
				d.State = journal.Pending
			}
			must(tx.AddDelivery(d))
		}
	})
	prune := func(want int) {
		t.Helper()
		left := all
		for calls, more := 0, true; more; calls++ {
			f.do(func(tx journal.Tx) { more = ok(tx.Prune(epoch.UnixMicro()+1, epoch.UnixMicro()+1, limit)) })
			f.view(func(r journal.Reader) {
				now := len(ok(r.Events(journal.EventFilter{Limit: all})))
				if left-now > limit && calls > 0 {
					t.Errorf("call %d removed %d events, want at most %d", calls, left-now, limit)
				}
				left = now
			})
			if calls > 2*all {
				t.Fatal("it does not come to an end")
			}
		}
		if left != want {
			t.Errorf("%d events are left, want %d", left, want)
		}
	}
	prune(waiting + 1) // and the newest
	f.do(func(tx journal.Tx) {
		for seq := range int64(waiting) {
			must(tx.Acknowledge(seq+1, 1, 1, 2))
		}
	})
	prune(1)
}

func testReceipts(t *testing.T, open Open) {
	f := start(t, open)
	f.do(func(tx journal.Tx) {
		must(tx.PutCommitReceipt("a", "1", []byte("one")))
		must(tx.PutCommitReceipt("b", "1", []byte{}))
	})
	f.reopen()
	f.view(func(r journal.Reader) {
		for owner, want := range map[string]string{"a": "one", "b": ""} {
			if receipt, found, err := r.CommitReceipt(owner, "1"); err != nil || !found || string(receipt) != want {
				t.Errorf("the receipt of %s is %q (%t, %v)", owner, receipt, found, err)
			}
		}
		if _, found, err := r.CommitReceipt("a", "2"); err != nil || found {
			t.Errorf("a receipt that does not exist is found (%v)", err)
		}
	})
}

func testPruneReceipts(t *testing.T, open Open) {
	f := start(t, open)
	f.do(func(tx journal.Tx) {
		for i := range 5 {
			must(tx.PutCommitReceipt("a", fmt.Sprint(i), nil))
		}
	})
	later := time.Now().Add(time.Hour).UnixMicro()
	rounds := 0
	for more := true; more; rounds++ {
		f.do(func(tx journal.Tx) { more = ok(tx.Prune(later, later, 2)) })
	}
	if rounds != 3 {
		t.Errorf("5 receipts went in %d rounds of 2, want 3", rounds)
	}
	f.view(func(r journal.Reader) {
		if _, found, _ := r.CommitReceipt("a", "4"); found {
			t.Error("a receipt older than the retention is still there")
		}
	})
}
