package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Disk records what an engine does to its files, so that the power can be cut
// at any point of it.
type Disk interface {
	// Position is how much was recorded so far.
	Position() int
	// Cut writes what the disk may hold if the power fails at a position into an
	// empty directory.
	Cut(at int, r *rand.Rand, dir string) error
}

const (
	powerWriters = 4
	powerUpdates = 90 // of each writer, in each of two lives of the store
	powerPayload = 20 << 10
)

// reported is an update whose outcome was reported, and when.
type reported struct {
	writer   int
	position int
}

// PowerLoss writes to a store on a recorded disk, cuts the power at random points of the
// record, opens the store that is left each time, and returns missing or partial
// updates.
func PowerLoss(t *testing.T, open Open, watch func(testing.TB, string) Disk, cuts int) (wrong []string) {
	t.Helper()
	dir := t.TempDir()
	disk := watch(t, dir)
	var order []reported
	for life := range 2 {
		store := open(t, dir)
		order = append(order, writePairs(t, store, disk, life)...)
		if err := store.Close(); err != nil {
			t.Fatalf("closing the store: %v", err)
		}
	}
	r := rand.New(rand.NewPCG(7, uint64(cuts))) //nolint:gosec // reproducible
	end := disk.Position()
	for i := range cuts {
		at := r.IntN(end + 1)
		if i%2 == 0 { // right after a report: what it promises is the most fragile then
			at = order[r.IntN(len(order))].position
		}
		left := t.TempDir()
		if err := disk.Cut(at, r, left); err != nil {
			t.Fatal(err)
		}
		for _, w := range inspectCut(t, open, left, order, at) {
			wrong = append(wrong, fmt.Sprintf("cut %d at %d of %d: %s", i, at, end, w))
		}
	}
	return wrong
}

// writePairs has several writers commit related rows, and returns their updates in the
// order of their reports.
func writePairs(t *testing.T, store journal.Store, disk Disk, life int) (order []reported) {
	t.Helper()
	var mu sync.Mutex
	var writers sync.WaitGroup
	for w := range powerWriters {
		r := rand.New(rand.NewPCG(uint64(w), uint64(life))) //nolint:gosec // reproducible
		writers.Go(func() {
			for range powerUpdates {
				payload := make([]byte, r.IntN(powerPayload))
				done := make(chan error, 1)
				store.Submit(journal.Update{
					Apply: func(tx journal.Tx) error { return writePair(tx, w, payload) },
					Done: func(err error) {
						mu.Lock()
						order = append(order, reported{w, disk.Position()})
						mu.Unlock()
						done <- err
					},
				})
				if err := <-done; err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	writers.Wait()
	return order
}

// writePair appends an event with a delivery and counts it in a key.
func writePair(tx journal.Tx, w int, payload []byte) error {
	e := &busv1.Event{Topic: fmt.Sprintf("writer.w%d", w), Source: "test", Payload: payload}
	must(tx.AppendEvent(e))
	must(tx.AddDelivery(journal.Delivery{Seq: e.GetSeq(), Subscription: int64(w + 1), Key: "k"}))
	count := len(ok(tx.KVGet("x", fmt.Sprint("length", w))).Value) + 1
	ok(tx.KVPut("x", fmt.Sprint("length", w), make([]byte, count)))
	return nil
}

// inspectCut opens the store after a power cut and compares it with the updates
// reported before.
func inspectCut(t *testing.T, open Open, dir string, order []reported, at int) (wrong []string) {
	t.Helper()
	defer func() { // a damaged store may make a read fail anywhere
		if p := recover(); p != nil {
			wrong = append(wrong, fmt.Sprint("reading the store: ", p))
		}
	}()
	least := 0
	for least < len(order) && order[least].position <= at {
		least++
	}
	store := open(t, dir)
	if store == nil {
		return []string{"it cannot be opened"}
	}
	defer func() { _ = store.Close() }()
	must(store.View(t.Context(), func(r journal.Reader) error {
		wrong = comparePairs(r, order, least)
		return nil
	}))
	if err := journal.Do(t.Context(), store, func(tx journal.Tx) error { return writePair(tx, 0, nil) }); err != nil {
		wrong = append(wrong, fmt.Sprint("it does not go on: ", err))
	}
	return wrong
}

// comparePairs returns the problems of a store that must hold a prefix of the updates,
// with a minimal length, and nothing of the others.
func comparePairs(r journal.Reader, order []reported, least int) (wrong []string) {
	counts := make([]int, powerWriters)
	total := 0
	for w := range counts {
		counts[w] = len(ok(r.KVGet("x", fmt.Sprint("length", w))).Value)
		events := len(ok(r.Events(journal.EventFilter{Topic: fmt.Sprintf("writer.w%d", w), Limit: 1 << 20})))
		pending := len(ok(r.PendingLane(int64(w+1), "k", 0, 1<<20)))
		if events != counts[w] || pending != counts[w] {
			wrong = append(wrong, fmt.Sprintf("writer %d: %d updates, but %d events and %d deliveries", w, counts[w], events,
				pending))
		}
		total += counts[w]
	}
	if total < least {
		return append(wrong, fmt.Sprintf("%d updates were reported, %d are there", least, total))
	}
	if total > len(order) {
		return append(wrong, fmt.Sprintf("%d updates were made, %d are there", len(order), total))
	}
	want := make([]int, powerWriters)
	for _, o := range order[:total] {
		want[o.writer]++
	}
	if !slices.Equal(counts, want) {
		wrong = append(wrong, fmt.Sprintf("the first %d updates are %v by writer, the store has %v", total, want, counts))
	}
	if last := ok(r.LastSeq()); int(last) != total {
		wrong = append(wrong, fmt.Sprintf("%d events are there, the last has number %d", total, last))
	}
	return wrong
}
