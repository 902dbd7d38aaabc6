package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

func testSubscriptions(t *testing.T, open Open) {
	f := start(t, open)
	first := journal.Subscription{Extension: "x", Pattern: "a.*"}
	second := journal.Subscription{Extension: "y", Pattern: "a.*", ParkedAt: 7}
	f.do(func(tx journal.Tx) {
		must(tx.PutSubscription(&first))
		must(tx.PutSubscription(&second))
		for i := range int64(6) {
			seq := appendEvent(tx, "a.b")
			state := journal.Pending
			if i%2 == 1 {
				state = journal.Done
			}
			must(tx.AddDelivery(journal.Delivery{Seq: seq, Subscription: first.ID, State: state}))
			must(tx.AddDelivery(journal.Delivery{Seq: seq, Subscription: second.ID}))
		}
	})
	if first.ID == 0 || first.ID == second.ID {
		t.Fatalf("subscriptions have the ids %d and %d", first.ID, second.ID)
	}
	if err := journal.Do(t.Context(), f, func(tx journal.Tx) error {
		return tx.PutSubscription(&journal.Subscription{Extension: "x", Pattern: "a.*"})
	}); err == nil {
		t.Error("an extension subscribed to one pattern twice")
	}
	first.ParkedAt = 99
	f.do(func(tx journal.Tx) { must(tx.PutSubscription(&first)) })
	f.reopen()
	f.view(func(r journal.Reader) {
		if diff := cmp.Diff([]journal.Subscription{first, second}, ok(r.Subscriptions())); diff != "" {
			t.Errorf("the subscriptions changed (-stored +read):\n%s", diff)
		}
	})
	f.do(func(tx journal.Tx) { must(tx.DeleteSubscription(second.ID)) })
	f.reopen()
	third := journal.Subscription{Extension: "y", Pattern: "a.*"}
	f.do(func(tx journal.Tx) { must(tx.PutSubscription(&third)) })
	if third.ID == second.ID || third.ID == first.ID {
		t.Errorf("the id %d is used again", third.ID)
	}
	f.view(func(r journal.Reader) {
		pending := map[int64]int{}
		must(r.Pending(func(d journal.Delivery) bool { pending[d.Subscription]++; return true }))
		if diff := cmp.Diff(map[int64]int{first.ID: 3}, pending); diff != "" {
			t.Errorf("pending by subscription after deleting one (-want +got):\n%s", diff)
		}
	})
}

func testDeliveries(t *testing.T, open Open) {
	f := start(t, open)
	d := journal.Delivery{Seq: 1, Subscription: 2, Key: "k"}
	f.do(func(tx journal.Tx) {
		appendEvent(tx, "a.b")
		must(tx.AddDelivery(d))
	})
	d.Rank = journal.RankOf(1)
	read := func() journal.Delivery {
		var got *journal.Delivery
		f.view(func(r journal.Reader) { got = ok(r.Delivery(1, 2)) })
		return *got
	}
	if diff := cmp.Diff(d, read()); diff != "" {
		t.Errorf("a new delivery (-want +got):\n%s", diff)
	}
	f.do(func(tx journal.Tx) {
		d.Attempts, d.Reason = 1, "failed"
		must(tx.UpdateDelivery(d))
		must(tx.Acknowledge(1, 3, 5, 6)) // there is none
		must(tx.Acknowledge(1, 2, 5, 6))
	})
	f.do(func(tx journal.Tx) { must(tx.Acknowledge(1, 2, 7, 8)) }) // it is settled
	d.State, d.StartedAt, d.SettledAt = journal.Done, 5, 6
	if diff := cmp.Diff(d, read()); diff != "" {
		t.Errorf("an acknowledged delivery (-want +got):\n%s", diff)
	}
	f.view(func(r journal.Reader) {
		must(r.Pending(func(d journal.Delivery) bool {
			t.Errorf("acknowledged, and yet pending: %+v", d)
			return true
		}))
	})
	d = journal.Delivery{
		Seq: 1, Subscription: 2, Key: "k", State: journal.Dead, Attempts: 3, NotBefore: 4, StartedAt: 5, SettledAt: 6,
		Uncertain: true,
		Reason:    "why", ProviderID: "p", Conversation: 7, Rank: 8, Resubmitted: 9,
	}
	f.do(func(tx journal.Tx) { must(tx.UpdateDelivery(d)) })
	f.reopen()
	if diff := cmp.Diff(d, read()); diff != "" {
		t.Errorf("a changed delivery (-want +got):\n%s", diff)
	}
	f.view(func(r journal.Reader) {
		if other := ok(r.Delivery(1, 3)); other != nil {
			t.Errorf("a delivery that does not exist is %+v", other)
		}
	})
}

// testPending has two subscriptions with interleaved lanes, settled deliveries, and
// one that was queued again after the others.
func testPending(t *testing.T, open Open) {
	f := start(t, open)
	f.do(func(tx journal.Tx) {
		for i := range int64(12) {
			seq := appendEvent(tx, "a.b")
			for sub := int64(2); sub > 0; sub-- {
				state := journal.Pending
				if i%4 == 3 {
					state = journal.Done
				} else if i == 0 {
					state = journal.InFlight
				}
				must(tx.AddDelivery(journal.Delivery{Seq: seq, Subscription: sub, Key: string("ba"[i%2]), State: state}))
			}
		}
		d := ok(tx.Delivery(1, 1))
		d.State, d.Rank = journal.Pending, journal.RankOf(12)+1
		must(tx.UpdateDelivery(*d))
	})
	f.view(func(r journal.Reader) {
		var got []string
		must(r.Pending(func(d journal.Delivery) bool {
			got = append(got, fmt.Sprintf("%d%s%d", d.Subscription, d.Key, d.Seq))
			return true
		}))
		want := []string{
			"1a2", "1b3", "1b5", "1a6", "1b7", "1b9", "1a10", "1b11", "1b1",
			"2b1", "2a2", "2b3", "2b5", "2a6", "2b7", "2b9", "2a10", "2b11",
		}
		if !slices.Equal(got, want) {
			t.Errorf("pending deliveries come as\n%v, want\n%v", got, want)
		}
		n := 0
		must(r.Pending(func(journal.Delivery) bool { n++; return n < 3 }))
		if n != 3 {
			t.Errorf("stopped after 3, the iteration went on to %d", n)
		}
		lane := ok(r.PendingLane(1, "b", journal.RankOf(5), 3))
		if seqs := deliverySeqs(lane); !slices.Equal(seqs, []int64{7, 9, 11}) {
			t.Errorf("behind event 5 in its lane are %v, want the next three", seqs)
		}
		if rest := deliverySeqs(ok(r.PendingLane(1, "b", lane[2].Rank, 3))); !slices.Equal(rest, []int64{1}) {
			t.Errorf("at the end of the lane is %v, want the one that was queued again", rest)
		}
	})
}

func deliverySeqs(ds []journal.Delivery) (seqs []int64) {
	for _, d := range ds {
		seqs = append(seqs, d.Seq)
	}
	return seqs
}

func testDeliveryFilter(t *testing.T, open Open) {
	f := start(t, open)
	f.do(func(tx journal.Tx) {
		for i := range int64(150) {
			d := journal.Delivery{Seq: appendEvent(tx, "a.b"), Subscription: 1 + i%2, State: journal.DeliveryState(i % 4)}
			must(tx.AddDelivery(d))
			if i == 30 {
				d.ProviderID, d.Rank = "p1", journal.RankOf(d.Seq)
				must(tx.UpdateDelivery(d))
			}
		}
		must(tx.AddDelivery(journal.Delivery{Seq: 1, Subscription: 2}))
	})
	pending := []journal.DeliveryState{journal.Pending, journal.InFlight}
	f.view(func(r journal.Reader) {
		for name, c := range map[string]struct {
			filter journal.DeliveryFilter
			want   []int64
		}{
			"newest first":      {journal.DeliveryFilter{Limit: 3}, []int64{150, 149, 148}},
			"of an event":       {journal.DeliveryFilter{Seq: 1}, []int64{1, 1}},
			"of a subscription": {journal.DeliveryFilter{Subscription: 2, Before: 6}, []int64{4, 2, 1}},
			"dead": {journal.DeliveryFilter{States: []journal.DeliveryState{journal.Dead}, Before: 9},
				[]int64{8, 4}},
			"unsettled": {journal.DeliveryFilter{States: pending, Before: 7}, []int64{6, 5, 2, 1, 1}},
			"settled": {journal.DeliveryFilter{States: []journal.DeliveryState{journal.Done, journal.Dead},
				Limit: 2}, []int64{148, 147}},
			"all of them": {journal.DeliveryFilter{Seq: 3, Subscription: 1,
				States: []journal.DeliveryState{journal.Done}}, []int64{3}},
			"none":                 {journal.DeliveryFilter{Seq: 3, Subscription: 2}, nil},
			"with a platform's id": {journal.DeliveryFilter{ProviderID: "p1"}, []int64{31}},
			"that id, before":      {journal.DeliveryFilter{ProviderID: "p1", After: 30, Before: 32}, []int64{31}},
			"that id, later":       {journal.DeliveryFilter{ProviderID: "p1", After: 31}, nil},
			"the last ones":        {journal.DeliveryFilter{After: 148}, []int64{150, 149}},
			"between":              {journal.DeliveryFilter{After: 3, Before: 7, Subscription: 1}, []int64{5}},
		} {
			if got := deliverySeqs(ok(r.Deliveries(c.filter))); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
		if n := len(ok(r.Deliveries(journal.DeliveryFilter{}))); n != 100 {
			t.Errorf("without a limit there are %d deliveries, want 100", n)
		}
	})
}
