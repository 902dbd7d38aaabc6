package storetest

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/switchboard-run/switchboard/internal/seed"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// model is the expected content of a store.
type model struct {
	events  []int64
	last    int64
	dedupe  map[string]int64
	ds      map[[2]int64]journal.Delivery
	kv      map[string]journal.KV
	highest map[string]int64 // versions that a key ever had
}

func (m *model) clone() *model {
	return &model{slices.Clone(m.events), m.last, maps.Clone(m.dedupe), maps.Clone(m.ds), maps.Clone(m.kv),
		maps.Clone(m.highest)}
}

// Checks sets the number of rapid's checks, unless the command line does: each check
// opens its own store, which is slow.
func Checks(t testing.TB, n int) {
	t.Helper()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// testModel applies random updates, some of which fail, and reopens now and then; after
// each the store must match the model.
func testModel(t *testing.T, open Open) {
	Checks(t, 25)
	seed.Check(t, modelProperty(t, open))
}

// Fuzz drives the same with a fuzzer's bytes.
func Fuzz(f *testing.F, open Open) {
	f.Fuzz(func(t *testing.T, drawn []byte) {
		rapid.MakeFuzz(modelProperty(t, open))(t, drawn)
	})
}

func modelProperty(t testing.TB, open Open) func(*rapid.T) {
	t.Helper()
	return func(rt *rapid.T) {
		f := start(t, open)
		defer func() { _ = f.Close() }()
		m := &model{dedupe: map[string]int64{}, ds: map[[2]int64]journal.Delivery{}, kv: map[string]journal.KV{},
			highest: map[string]int64{}}
		for range rapid.IntRange(1, 12).Draw(rt, "updates") {
			m = m.update(rt, f)
			if rapid.IntRange(0, 5).Draw(rt, "reopen") == 0 {
				f.reopen()
			}
			f.view(func(r journal.Reader) { m.compare(rt, r) })
		}
	}
}

// update draws a list of changes and applies it to both; a failing one does not change
// the model.
func (m *model) update(rt *rapid.T, f *fixture) *model {
	type change func(m *model, tx journal.Tx)
	changes := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) change { return m.draw(rt) }), 1, 6).Draw(rt, "changes")
	fails := rapid.IntRange(0, 3).Draw(rt, "fails") == 0
	var next *model
	err := journal.Do(f.Context(), f.Store, func(tx journal.Tx) error {
		next = m.clone()
		for _, c := range changes {
			c(next, tx)
		}
		if fails {
			return errRefused
		}
		return nil
	})
	switch {
	case fails && err == nil, !fails && err != nil:
		rt.Fatalf("an update that has to fail (%t) returned %v", fails, err)
	case fails:
		return m
	}
	return next
}

func (*model) draw(rt *rapid.T) func(*model, journal.Tx) {
	key := rapid.SampledFrom([]string{"", "a", "ab", "b/1", "é"}).Draw(rt, "key")
	n := rapid.Int64Range(1, 40).Draw(rt, "n")
	switch rapid.IntRange(0, 6).Draw(rt, "change") {
	case 0, 1:
		return func(m *model, tx journal.Tx) { m.publish(tx, key, n%3+1) }
	case 2:
		state := journal.DeliveryState(rapid.IntRange(0, 3).Draw(rt, "state"))
		return func(m *model, tx journal.Tx) { m.settle(tx, n, state) }
	case 3, 4:
		return func(m *model, tx journal.Tx) {
			version := ok(tx.KVPut("x", key, []byte(fmt.Sprint(n))))
			if version <= m.highest[key] {
				panic(fmt.Sprintf("version %d of %q, after %d", version, key, m.highest[key]))
			}
			m.highest[key] = version
			m.kv[key] = journal.KV{Key: key, Value: []byte(fmt.Sprint(n)), Version: version}
		}
	case 5:
		return func(m *model, tx journal.Tx) {
			must(tx.KVDelete("x", key))
			delete(m.kv, key)
		}
	}
	return func(m *model, tx journal.Tx) { m.prune(tx, int(n)) }
}

// publish appends an event with deliveries to as many subscriptions, unless its
// dedupe key is known.
func (m *model) publish(tx journal.Tx, key string, subscriptions int64) {
	seq, found, err := tx.EventByDedupe("test", key)
	must(err)
	if want, known := m.dedupe[key]; found != known || seq != want {
		panic(fmt.Sprintf("dedupe key %q is of event %d (%t), want %d (%t)", key, seq, found, want, known))
	}
	if found {
		return
	}
	e := event("a.b", 0)
	e.Key, e.DedupeKey = key, key
	must(tx.AppendEvent(e))
	if m.last++; e.GetSeq() != m.last {
		panic(fmt.Sprintf("an event has seq %d, want %d", e.GetSeq(), m.last))
	}
	if key != "" {
		m.dedupe[key] = m.last
	}
	m.events = append(m.events, m.last)
	for sub := range subscriptions {
		d := journal.Delivery{Seq: m.last, Subscription: sub, Key: key, Rank: journal.RankOf(m.last)}
		must(tx.AddDelivery(d))
		m.ds[[2]int64{m.last, sub}] = d
	}
}

func (m *model) settle(tx journal.Tx, seq int64, state journal.DeliveryState) {
	for _, d := range ok(tx.Deliveries(journal.DeliveryFilter{Seq: seq})) {
		if d.State < journal.Done && state == journal.Done {
			d.StartedAt = epoch.UnixMicro() - 1
			must(tx.Acknowledge(d.Seq, d.Subscription, d.StartedAt, epoch.UnixMicro()))
			d.State, d.SettledAt = state, epoch.UnixMicro()
		} else {
			d.State, d.SettledAt = state, epoch.UnixMicro()
			must(tx.UpdateDelivery(d))
		}
		m.ds[[2]int64{d.Seq, d.Subscription}] = d
	}
}

func (m *model) prune(tx journal.Tx, limit int) {
	for calls, more := 0, true; more; calls++ {
		if more = ok(tx.Prune(epoch.UnixMicro()+1, epoch.UnixMicro()+1, limit)); calls > len(m.events) {
			panic("pruning does not come to an end")
		}
	}
	m.events = slices.DeleteFunc(m.events, func(seq int64) bool {
		for sub := range int64(3) {
			if d, exists := m.ds[[2]int64{seq, sub}]; exists && d.State < journal.Done {
				return false
			}
		}
		if seq == m.last {
			return false
		}
		maps.DeleteFunc(m.ds, func(k [2]int64, _ journal.Delivery) bool { return k[0] == seq })
		maps.DeleteFunc(m.dedupe, func(_ string, of int64) bool { return of == seq })
		return true
	})
}

func (m *model) compare(rt *rapid.T, r journal.Reader) {
	if got := seqs(ok(r.Events(journal.EventFilter{Ascending: true, Limit: 1 << 20}))); !slices.Equal(got, m.events) {
		rt.Fatalf("the store has the events %v, want %v", got, m.events)
	}
	if last := ok(r.LastSeq()); last != m.last {
		rt.Fatalf("the last seq is %d, want %d", last, m.last)
	}
	var want, got []journal.Delivery
	for _, d := range m.ds {
		if d.State < journal.Done {
			want = append(want, d)
		}
	}
	slices.SortFunc(want, func(a, b journal.Delivery) int {
		return cmp.Or(cmp.Compare(a.Subscription, b.Subscription), cmp.Compare(a.Rank, b.Rank))
	})
	must(r.Pending(func(d journal.Delivery) bool { got = append(got, d); return true }))
	if !slices.Equal(got, want) {
		rt.Fatalf("pending are\n%+v, want\n%+v", got, want)
	}
	if all := ok(r.Deliveries(journal.DeliveryFilter{Limit: 1 << 20})); len(all) != len(m.ds) {
		rt.Fatalf("there are %d deliveries, want %d", len(all), len(m.ds))
	}
	keys := ok(r.KVScan("x", "", "", 0))
	for i, k := range slices.Sorted(maps.Keys(m.kv)) {
		if i >= len(keys) || keys[i].Key != k || string(keys[i].Value) != string(m.kv[k].Value) ||
			keys[i].Version != m.kv[k].Version {
			rt.Fatalf("the keys are %+v, want %+v", keys, m.kv)
		}
	}
	if len(keys) != len(m.kv) {
		rt.Fatalf("there are %d keys, want %d", len(keys), len(m.kv))
	}
}
