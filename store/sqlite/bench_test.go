package sqlite_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// BenchmarkAppend: events of 300 bytes with one delivery each, durable, with so
// many who each wait for theirs.
func BenchmarkAppend(b *testing.B) {
	payload := make([]byte, 300)
	for _, submitters := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(submitters), func(b *testing.B) {
			s := open(b, b.TempDir())
			defer func() { _ = s.Close() }()
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for w := range submitters {
				wg.Go(func() {
					done := make(chan error, 1)
					for n := w; n < b.N; n += submitters {
						s.Submit(journal.Update{
							Apply: func(tx journal.Tx) error {
								e := &busv1.Event{Topic: "a.b", Key: "k", Source: "bench", Payload: payload, CreatedAtUs: 1}
								if err := tx.AppendEvent(e); err != nil {
									return err
								}
								return tx.AddDelivery(journal.Delivery{Seq: e.GetSeq(), Subscription: 1, Key: "k"})
							},
							Done: func(err error) { done <- err },
						})
						if err := <-done; err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkPrune: 200 of 200,000 settled events; the others are too young.
func BenchmarkPrune(b *testing.B) {
	s := open(b, b.TempDir())
	defer func() { _ = s.Close() }()
	fillSettled(b, s, 200_000)
	b.ResetTimer()
	for n := range b.N {
		if err := journal.Do(b.Context(), s, func(tx journal.Tx) error {
			_, err := tx.Prune(int64(200*(n+1)), 0, 200)
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
}

func fillSettled(b *testing.B, s journal.Store, n int) {
	b.Helper()
	for from := 0; from < n; from += 10_000 {
		if err := journal.Do(b.Context(), s, func(tx journal.Tx) error {
			for i := from; i < from+10_000; i++ {
				e := &busv1.Event{Topic: "a.b", Key: "k", Source: "bench", Payload: make([]byte, 300), CreatedAtUs: int64(i)}
				if err := tx.AppendEvent(e); err != nil {
					return err
				}
				if err := tx.AddDelivery(journal.Delivery{Seq: e.GetSeq(), Subscription: 1, Key: "k",
					State: journal.Done}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}
