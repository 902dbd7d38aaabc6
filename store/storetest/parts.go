package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// testParts has parts of updates fail in every way, in a group with failing updates:
// nothing failed is stored, and everything else is.
func testParts(t *testing.T, open Open) {
	f := start(t, open)
	f.do(func(tx journal.Tx) { must(tx.PutSubscription(&journal.Subscription{Extension: "x", Pattern: "a.b"})) })
	release := make(chan struct{})
	f.Submit(journal.Update{Apply: func(journal.Tx) error { <-release; return nil }})
	const updates, parts = 12, 5
	var done sync.WaitGroup
	var mu sync.Mutex
	var want []string
	for u := range updates {
		done.Add(1)
		var kept []string
		f.Submit(journal.Update{
			Apply: func(tx journal.Tx) error {
				kept = nil
				for p := range parts {
					key := fmt.Sprintf("%02d/%d", u, p)
					err := tx.Part(func() error {
						if p == 3 {
							return errRefused // before anything is written
						}
						e := event("a.b", 0)
						e.Key = key
						must(tx.AppendEvent(e))
						must(tx.AddDelivery(journal.Delivery{Seq: e.GetSeq(), Subscription: 1, Key: key}))
						ok(tx.KVPut("x", key, nil))
						switch (u + p) % 4 {
						case 0:
							return errRefused
						case 1:
							panic("of a part")
						}
						return nil
					})
					if err == nil {
						kept = append(kept, key)
					}
				}
				if u%5 == 4 {
					return errRefused
				}
				return nil
			},
			Done: func(err error) {
				if (u%5 == 4) != errors.Is(err, errRefused) {
					t.Errorf("the outcome of update %d is %v", u, err)
				}
				mu.Lock()
				if err == nil {
					want = append(want, kept...)
				}
				mu.Unlock()
				done.Done()
			},
		})
	}
	close(release)
	done.Wait()
	f.view(func(r journal.Reader) {
		var lanes, keys, keyed []string
		for i, e := range ok(r.Events(journal.EventFilter{Ascending: true, Limit: 1000})) {
			if keyed = append(keyed, e.GetKey()); e.GetSeq() != int64(i+1) {
				t.Errorf("event %d has the seq %d", i+1, e.GetSeq())
			}
		}
		must(r.Pending(func(d journal.Delivery) bool { lanes = append(lanes, d.Key); return true }))
		for _, kv := range ok(r.KVScan("x", "", "", 1000)) {
			keys = append(keys, kv.Key)
		}
		if len(want) == 0 || !slices.Equal(keyed, want) || !slices.Equal(lanes, want) || !slices.Equal(keys, want) {
			t.Errorf("the parts that stand are %v\nevents %v\ndeliveries %v\nkeys %v", want, keyed, lanes, keys)
		}
	})
}
