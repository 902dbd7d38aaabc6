package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// many tracks the deliveries of a store, of enough events for an engine that stores
// several together.
type many struct {
	*fixture
	r  *rand.Rand
	ds map[[2]int64]journal.Delivery
}

// testManyDeliveries applies every operation to deliveries, some in updates that fail,
// and compares every way of reading them.
func testManyDeliveries(t *testing.T, open Open) {
	const subscriptions = 3
	m := &many{start(t, open), rand.New(rand.NewPCG(3, 4)), map[[2]int64]journal.Delivery{}} //nolint:gosec // reproducible
	m.do(func(tx journal.Tx) {
		for s := range subscriptions {
			must(tx.PutSubscription(&journal.Subscription{Extension: "x", Pattern: fmt.Sprint("p", s)}))
		}
	})
	for round := range 24 {
		before := maps.Clone(m.ds)
		fails := round%5 == 4
		err := journal.Do(t.Context(), m, func(tx journal.Tx) error {
			m.ds = maps.Clone(before)
			m.accept(tx, round, subscriptions)
			for range 120 {
				m.change(tx)
			}
			if round%8 == 7 {
				m.prune(tx)
			}
			m.compare(tx)
			if fails {
				return errRefused
			}
			return nil
		})
		if fails {
			m.ds = before
		} else if must(err); round%6 == 5 {
			m.reopen()
		}
		m.view(m.compare)
	}
	m.do(func(tx journal.Tx) {
		must(tx.DeleteSubscription(2))
		maps.DeleteFunc(m.ds, func(k [2]int64, d journal.Delivery) bool { return k[1] == 2 && d.State < journal.Done })
		m.compare(tx)
	})
	m.view(m.compare)
}

func (m *many) accept(tx journal.Tx, round, subscriptions int) {
	for range 60 {
		e := event("a.b", time.Duration(round)*time.Hour)
		e.Key = []string{"", "a", "b", "c"}[m.r.IntN(4)]
		must(tx.AppendEvent(e))
		for s := range int64(subscriptions) {
			d := journal.Delivery{Seq: e.GetSeq(), Subscription: s + 1, Key: e.GetKey()}
			switch m.r.IntN(10) {
			case 0:
				d.Key = "" // a subscription without order
			case 1:
				d.State = journal.InFlight
			case 2:
				d.State, d.SettledAt = journal.Done, epoch.UnixMicro()
			case 3:
				continue // it did not match
			}
			must(tx.AddDelivery(d))
			d.Rank = journal.RankOf(d.Seq)
			m.ds[[2]int64{d.Seq, d.Subscription}] = d
		}
	}
}

// change changes one delivery, newer ones rather than older ones.
func (m *many) change(tx journal.Tx) {
	last := ok(tx.LastSeq())
	k := [2]int64{last - min(m.r.Int64N(400), m.r.Int64N(400)), 1 + m.r.Int64N(3)}
	d, exists := m.ds[k]
	at := epoch.UnixMicro() + m.r.Int64N(1<<30)
	if !exists {
		must(tx.Acknowledge(k[0], k[1], at, at))
		return
	}
	switch m.r.IntN(9) {
	case 0:
		d.State, d.Attempts, d.NotBefore, d.Reason, d.StartedAt = journal.Pending, d.Attempts+1, at, "failed", at
	case 1:
		d.State, d.Reason, d.SettledAt = journal.Dead, "dead", at
	case 2:
		d.State, d.SettledAt, d.Resubmitted, d.Rank = journal.Pending, 0, at, journal.RankOf(last)+int64(len(m.ds))
		for _, other := range m.ds {
			if other.Subscription == d.Subscription && other.Rank == d.Rank {
				return
			}
		}
	case 3:
		d.State, d.StartedAt, d.SettledAt, d.ProviderID = journal.Done, at, at+5, "p"
	case 4:
		d.State = journal.InFlight
	case 5:
		d.State, d.StartedAt, d.SettledAt = journal.Done, at, at-1
	default:
		must(tx.Acknowledge(d.Seq, d.Subscription, at, at+7))
		if d.State < journal.Done {
			d.State, d.StartedAt, d.SettledAt = journal.Done, at, at+7
		}
		m.ds[k] = d
		return
	}
	must(tx.UpdateDelivery(d))
	m.ds[k] = d
}

// prune removes what is settled of the older half.
func (m *many) prune(tx journal.Tx) {
	last := ok(tx.LastSeq())
	e := ok(tx.Event(last / 2))
	if e == nil {
		return
	}
	waits := map[int64]bool{}
	for k, d := range m.ds {
		waits[k[0]] = waits[k[0]] || d.State < journal.Done
	}
	before := e.GetCreatedAtUs()
	old := map[int64]bool{}
	for k := range m.ds {
		old[k[0]] = ok(tx.Event(k[0])).GetCreatedAtUs() < before
	}
	for more := true; more; {
		more = ok(tx.Prune(before, epoch.Add(1<<50).UnixMicro(), 50))
	}
	maps.DeleteFunc(m.ds, func(k [2]int64, _ journal.Delivery) bool { return old[k[0]] && !waits[k[0]] })
}

// compare reads in every way. It panics, for it runs in updates, too.
func (m *many) compare(r journal.Reader) {
	all := slices.SortedFunc(maps.Values(m.ds), func(a, b journal.Delivery) int {
		return cmp.Or(cmp.Compare(b.Seq, a.Seq), cmp.Compare(a.Subscription, b.Subscription))
	})
	m.same("all", all, ok(r.Deliveries(journal.DeliveryFilter{Limit: 1 << 20})))
	pending := filtered(all, func(d journal.Delivery) bool { return d.State < journal.Done })
	both := []journal.DeliveryState{journal.InFlight, journal.Pending}
	m.same("those of two states", pending, ok(r.Deliveries(journal.DeliveryFilter{States: both, Limit: 1 << 20})))
	for s := range int64(5) {
		first, middle := all[len(all)*9/10].Seq, all[len(all)/2].Seq
		f := journal.DeliveryFilter{
			Subscription: s, After: first, Before: middle,
			States: []journal.DeliveryState{journal.DeliveryState(s % 4)}, Limit: 30,
		}
		want := filtered(all, func(d journal.Delivery) bool {
			return (s == 0 || d.Subscription == s) && d.Seq > first && d.Seq < middle && d.State == f.States[0]
		})
		m.same(fmt.Sprintf("%+v", f), want[:min(len(want), 30)], ok(r.Deliveries(f)))
	}
	for range 20 {
		d := all[m.r.IntN(len(all))]
		if got := ok(r.Delivery(d.Seq, d.Subscription)); got == nil || *got != d {
			panic(fmt.Sprintf("a delivery is %+v, want %+v", got, d))
		}
		m.same("of one event", filtered(all, func(x journal.Delivery) bool { return x.Seq == d.Seq }),
			ok(r.Deliveries(journal.DeliveryFilter{Seq: d.Seq})))
	}
	slices.SortFunc(pending, func(a, b journal.Delivery) int {
		return cmp.Or(cmp.Compare(a.Subscription, b.Subscription), cmp.Compare(a.Rank, b.Rank))
	})
	var got []journal.Delivery
	must(r.Pending(func(d journal.Delivery) bool { got = append(got, d); return true }))
	m.same("what is pending", pending, got)
	for _, key := range []string{"", "a", "b", "none"} {
		sub, after, limit := 1+m.r.Int64N(3), journal.RankOf(m.r.Int64N(1000))-1, 1+m.r.IntN(100)
		lane := filtered(pending, func(d journal.Delivery) bool {
			return d.Subscription == sub && d.Key == key && d.Rank > after
		})
		m.same("lane "+key, lane[:min(len(lane), limit)], ok(r.PendingLane(sub, key, after, limit)))
	}
}

func filtered(ds []journal.Delivery, keep func(journal.Delivery) bool) (kept []journal.Delivery) {
	for _, d := range ds {
		if keep(d) {
			kept = append(kept, d)
		}
	}
	return kept
}

func (*many) same(what string, want, got []journal.Delivery) {
	if !slices.Equal(want, got) {
		panic(fmt.Sprintf("%s (-want +got):\n%s", what, gocmp.Diff(want, got)))
	}
}
