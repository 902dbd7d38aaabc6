package bus_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

func benchBus(b *testing.B, path string) (*bus.Bus, journal.Store) {
	b.Helper()
	store, err := sqlite.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	k, err := bus.New(
		context.Background(),
		bus.Options{Store: store, Effects: fakeEffects, Hooks: (&fakeRouter{}).hooks(), Log: hclog.NewNullLogger()},
	)
	if err != nil {
		b.Fatal(err)
	}
	return k, store
}

// BenchmarkFlow: publish, deliver, acknowledge, in one process: so many
// publishers each wait until their event is durable. With effects, each
// acknowledgement is a commit of its own.
func BenchmarkFlow(b *testing.B) {
	for _, effects := range []bool{false, true} {
		for _, publishers := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("effects=%t/publishers=%d", effects, publishers), func(b *testing.B) {
				k, store := benchBus(b, filepath.Join(b.TempDir(), "bench.db"))
				defer func() { _ = store.Close() }()
				defer k.Close()
				if err := k.Subscribe("x", on("a.b")); err != nil {
					b.Fatal(err)
				}
				a := &bus.Actor{ID: "x", Generation: 1, Publish: []string{"*"}}
				sink := k.Attach(a)
				sink.Credit(1024)
				var handled atomic.Int64
				all := make(chan struct{})
				go func() {
					for {
						f, open := sink.Next(b.Context())
						if !open {
							return
						}
						outcomes := make([]*busv1.Outcome, len(f.Deliveries))
						for i, d := range f.Deliveries {
							outcomes[i] = &busv1.Outcome{Token: d.GetToken(), Kind: busv1.Outcome_KIND_ACK}
							if effects {
								outcomes[i].Effects = []*busv1.Effect{effect(&busv1.Put{Key: "k"})}
							}
						}
						sink.Credit(len(f.Deliveries))
						k.Outcomes(a, outcomes)
						if handled.Add(int64(len(f.Deliveries))) == int64(b.N) {
							close(all)
						}
					}
				}()
				payload := []byte(`"` + fmt.Sprintf("%0298d", 1) + `"`)
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				for p := range publishers {
					wg.Go(func() {
						done := make(chan *busv1.CommitReceipt, 1)
						key := fmt.Sprint("k", p)
						for n := p; n < b.N; n += publishers {
							e := &busv1.Effect{
								Kind: &busv1.Effect_Publish{Publish: &busv1.Publish{Topic: "a.b", Key: key, Payload: payload}},
							}
							k.Submit(a, []*busv1.Commit{{Effects: []*busv1.Effect{e}}}, func(r []*busv1.CommitReceipt) { done <- r[0] })
							<-done
						}
					})
				}
				wg.Wait()
				<-all
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}

// BenchmarkFrames: as the kernel gets commits from an extension with 4096 in
// flight: a frame of them at a time.
func BenchmarkFrames(b *testing.B) {
	const lanes, frame, window = 4096, 256, 4096
	k, store := benchBus(b, filepath.Join(b.TempDir(), "bench.db"))
	defer func() { _ = store.Close() }()
	defer k.Close()
	if err := k.Subscribe("y", on("a.b")); err != nil {
		b.Fatal(err)
	}
	from := &bus.Actor{ID: "x", Generation: 1, Publish: []string{"a.b"}}
	to := &bus.Actor{ID: "y", Generation: 1}
	sink := k.Attach(to)
	sink.Credit(1024)
	all := make(chan struct{})
	go func() {
		for handled := 0; handled < b.N; {
			f, open := sink.Next(b.Context())
			if !open {
				return
			}
			outcomes := make([]*busv1.Outcome, len(f.Deliveries))
			for i, d := range f.Deliveries {
				outcomes[i] = &busv1.Outcome{Token: d.GetToken(), Kind: busv1.Outcome_KIND_ACK}
			}
			sink.Credit(len(f.Deliveries))
			k.Outcomes(to, outcomes)
			handled += len(f.Deliveries)
		}
		close(all)
	}()
	payload := []byte(`{"fill":"` + fmt.Sprintf("%0285d", 1) + `"}`)
	keys := make([]string, lanes)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	room := make(chan struct{}, window/frame)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += frame {
		commits := make([]*busv1.Commit, min(frame, b.N-n))
		for i := range commits {
			commits[i] = &busv1.Commit{
				Effects: []*busv1.Effect{effect(&busv1.Publish{Topic: "a.b", Key: keys[(n+i)%lanes], Payload: payload})},
			}
		}
		room <- struct{}{}
		left := len(commits)
		k.Submit(from, commits, func(r []*busv1.CommitReceipt) {
			if left -= len(r); left == 0 {
				<-room
			}
		})
	}
	<-all
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkRecovery: a bus starts on a store with a million settled deliveries
// and 10,000 pending ones, and hands out the first.
func BenchmarkRecovery(b *testing.B) {
	path := filepath.Join(b.TempDir(), "bench.db")
	k, store := benchBus(b, path)
	if err := k.Subscribe("x", on("a.b")); err != nil {
		b.Fatal(err)
	}
	k.Close()
	const settled, pending = 1_000_000, 10_000
	for from := 0; from < settled+pending; from += 10_000 {
		if err := journal.Do(b.Context(), store, func(tx journal.Tx) error {
			for i := from; i < from+10_000; i++ {
				e := &busv1.Event{
					Topic:       "a.b",
					Key:         fmt.Sprint("k", i%500),
					Source:      "bench",
					Payload:     make([]byte, 300),
					CreatedAtUs: time.Now().UnixMicro(),
				}
				if err := tx.AppendEvent(e); err != nil {
					return err
				}
				d := journal.Delivery{Seq: e.GetSeq(), Subscription: 2, Key: e.GetKey()}
				if i < settled {
					d.State = journal.Done
				}
				if err := tx.AddDelivery(d); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		k, store := benchBus(b, path)
		sink := k.Attach(&bus.Actor{ID: "x", Generation: 1})
		sink.Credit(1)
		if f, _ := sink.Next(b.Context()); len(f.Deliveries) != 1 {
			b.Fatal("nothing was handed out")
		}
		k.Close()
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
