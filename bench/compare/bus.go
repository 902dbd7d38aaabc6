package main

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

const busTopic = "bench.load"

// openBus opens the kernel's bus on its SQLite journal, in this process. Each publisher has
// a lane; waiting events are handled in frames, as the host does.
func openBus(o options, handle func([]byte)) (*queue, error) {
	store, err := sqlite.Open(filepath.Join(o.dir, "switchboard.db"))
	if err != nil {
		return nil, err
	}
	b, err := bus.New(context.Background(), bus.Options{
		Store: store, Log: hclog.NewNullLogger(), Events: 24 * time.Hour, Dead: 24 * time.Hour,
	})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	a := &bus.Actor{ID: "bench", Generation: 1, Publish: []string{"*"}}
	if err := b.Subscribe(a.ID, []bus.Subscription{{Pattern: busTopic, Ordered: true, AckWait: time.Minute, MaxDeliver: 4,
		MaxAge: time.Hour}}); err != nil {
		return nil, err
	}
	sink := b.Attach(a)
	sink.Credit(onTheWay)
	go func() {
		for {
			f, open := sink.Next(context.Background())
			if !open {
				return
			}
			outcomes := make([]*busv1.Outcome, len(f.Deliveries))
			for i, d := range f.Deliveries {
				handle(d.GetEvent().GetPayload())
				outcomes[i] = &busv1.Outcome{Token: d.GetToken(), Kind: busv1.Outcome_KIND_ACK}
			}
			sink.Credit(len(outcomes))
			b.Outcomes(a, outcomes)
		}
	}()
	return &queue{
		publish: func(_ context.Context, publisher int, event []byte) error {
			done := make(chan *busv1.CommitReceipt, 1)
			e := &busv1.Publish{Topic: busTopic, Key: strconv.Itoa(publisher), Payload: event}
			b.Submit(a, []*busv1.Commit{{Effects: []*busv1.Effect{{Kind: &busv1.Effect_Publish{Publish: e}}}}},
				func(r []*busv1.CommitReceipt) { done <- r[0] })
			if r := <-done; r.GetError() != nil {
				return contract.FromProto(r.GetError())
			}
			return nil
		},
		settled: func(ctx context.Context) error {
			for pending := true; pending; {
				pending = false
				err := b.View(ctx, func(r journal.Reader) error {
					return r.Pending(func(journal.Delivery) bool {
						pending = true
						return false
					})
				})
				if err != nil {
					return err
				}
			}
			return nil
		},
		close: func() {
			b.Close()
			_ = store.Close()
		},
	}, nil
}
