package backup_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/home/backup"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// BenchmarkLatency: how long commits of one event take, 250 a second, without a
// backup and while one is made of a store of 200,000 events.
func BenchmarkLatency(b *testing.B) {
	home, err := config.OpenHomeAt(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	store, err := sqlite.Open(home.Database())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	for range 20 {
		if err := journal.Do(b.Context(), store, func(tx journal.Tx) error {
			for range 10_000 {
				if err := appendOne(tx); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	for _, during := range []bool{false, true} {
		b.Run(fmt.Sprintf("backup=%t", during), func(b *testing.B) {
			for n := range b.N {
				ctx, stop := context.WithTimeout(b.Context(), 3*time.Second)
				began := time.Now()
				var info backup.Info
				if during {
					go func() {
						defer stop()
						var err error
						source := backup.Source{Home: home, Copy: store.Backup}
						info, err = backup.Create(b.Context(), source, filepath.Join(home.Backups(),
							fmt.Sprint(n, "-", b.N, backup.Extension)))
						if err != nil {
							b.Error(err)
						}
					}()
				}
				took := commitUntil(b, ctx, store)
				b.ReportMetric(time.Since(began).Seconds(), "s")
				b.ReportMetric(float64(info.StoreBytes)/(1<<20), "store-MiB")
				b.ReportMetric(float64(info.Bytes)/(1<<20), "MiB")
				for name, at := range map[string]int{"p50-ms": len(took) / 2, "p99-ms": len(took) * 99 / 100,
					"max-ms": len(took) - 1} {
					b.ReportMetric(float64(took[at].Microseconds())/1000, name)
				}
				stop()
			}
		})
	}
}

func appendOne(tx journal.Tx) error {
	e := &busv1.Event{Topic: "a.b", Key: "k", Source: "bench", Payload: make([]byte, 300), CreatedAtUs: 1}
	if err := tx.AppendEvent(e); err != nil {
		return err
	}
	return tx.AddDelivery(journal.Delivery{Seq: e.GetSeq(), Subscription: 1, Key: "k", State: journal.Done})
}

func commitUntil(b *testing.B, ctx context.Context, store journal.Store) (took []time.Duration) {
	b.Helper()
	tick := time.NewTicker(4 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		began := time.Now()
		if err := journal.Do(b.Context(), store, appendOne); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took
}
