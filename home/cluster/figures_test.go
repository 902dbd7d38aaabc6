package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// TestFiguresOfALargeCell measures what the commits of an owner feel of snapshots,
// truncation and a node that joins. It needs SWITCHBOARD_CLUSTER_EVENTS, such as 1000000.
func TestFiguresOfALargeCell(t *testing.T) {
	events, _ := strconv.Atoi(os.Getenv("SWITCHBOARD_CLUSTER_EVENTS"))
	if events == 0 {
		t.Skip("takes minutes: set SWITCHBOARD_CLUSTER_EVENTS=1000000")
	}
	server := postgrestest.Start(t, "shared_buffers=128MB", "max_wal_size=4GB")
	dsn := server.Database()
	cell, err := openDatabase(t, dsn, "one").Create(t.Context(), "home")
	must(t, err)
	s, tenure, _ := own(t, cell, "one")
	event := func(tx journal.Tx) error {
		return tx.AppendEvent(&busv1.Event{Topic: "a.b", Source: "x", Payload: []byte(strings.Repeat("{text}", 30)),
			CreatedAtUs: 1})
	}
	const group = 500
	began := time.Now()
	for range events / group {
		must(t, journal.Do(t.Context(), s, func(tx journal.Tx) error {
			for range group {
				if err := event(tx); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	t.Logf("%d events in %v; state %d MiB, log %d MiB", events, time.Since(began).Round(time.Millisecond), s.Size()>>20,
		s.Appended()>>20)

	var mu sync.Mutex
	var latencies []time.Duration
	ctx, stop := context.WithCancel(t.Context())
	var loading sync.WaitGroup
	loading.Go(func() {
		for ticks := time.Tick(5 * time.Millisecond); ctx.Err() == nil; <-ticks {
			sent := time.Now()
			if err := journal.Do(context.WithoutCancel(ctx), s, event); err != nil {
				t.Errorf("a commit: %v", err)
				return
			}
			mu.Lock()
			latencies = append(latencies, time.Since(sent))
			mu.Unlock()
		}
	})
	phase := func(name string, f func()) {
		t.Helper()
		mu.Lock()
		latencies = nil
		mu.Unlock()
		began := time.Now()
		f()
		took := time.Since(began).Round(time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(latencies)
		if n := len(latencies); n > 0 {
			t.Logf("%-40s %8v: %5d commits, p50 %v, p99 %v, max %v", name, took, n,
				latencies[n/2].Round(10*time.Microsecond), latencies[n*99/100].Round(10*time.Microsecond),
				latencies[n-1].Round(10*time.Microsecond))
		}
	}
	join := func(name string) func() {
		return func() {
			f, err := sqlite.Follow(filepath.Join(t.TempDir(), name), cell, sqlite.Options{})
			must(t, err)
			p, err := f.CatchUp(t.Context())
			must(t, err)
			t.Log(fmt.Sprint(name, ": ", p.Entries, " entries"))
			must(t, f.Close())
		}
	}
	phase("nothing else", func() { time.Sleep(10 * time.Second) })
	phase("a node joins from the log", join("log"))
	k := &keeper{cell: cell, store: s, tenure: tenure, window: func() time.Duration { return time.Hour },
		log: hclog.NewNullLogger()}
	phase("a snapshot is published", func() { must(t, k.publish(t.Context())) })
	phase("a node joins from the snapshot", join("snapshot"))
	server.DoIn(postgrestest.Name(dsn), "UPDATE switchboard.snapshots SET made = now() - interval '2 hours'")
	phase("the log is truncated", func() { must(t, k.sweep(t.Context())) })
	phase("nothing else again", func() { time.Sleep(10 * time.Second) })
	stop()
	loading.Wait()
}
