package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/journal/sqlite"
)

// stored compares an empty store with one that has seen much: how fast the
// kernel starts, and what a message costs.
func stored(b *bench) error {
	var starts, empty, full []time.Duration
	var emptyCPU, fullCPU []time.Duration
	for range min(b.rounds, 3) {
		for _, filled := range []bool{false, true} {
			d, err := newBed()
			if err != nil {
				return err
			}
			if filled {
				if err := fillStore(filepath.Join(d.home, "switchboard.db"), b.scale(1_000_000), b.scale(10_000), b.scale(10_000)); err != nil {
					return err
				}
			}
			d.say(1, "good morning")
			began := time.Now()
			if err := d.start(b.binary); err != nil {
				return err
			}
			if _, err := d.reply(context.Background()); err != nil {
				return err
			}
			if filled {
				starts = append(starts, time.Since(began))
			}
			if err := d.warm(); err != nil {
				return err
			}
			p, err := pace(d, b.scale(500))
			if err != nil {
				return err
			}
			if filled {
				full, fullCPU = append(full, p.p50), append(fullCPU, p.cpu)
			} else {
				empty, emptyCPU = append(empty, p.p50), append(emptyCPU, p.cpu)
			}
			d.close()
		}
	}
	fmt.Printf("with %d settled events, %d sessions, %d schedules:\n", b.scale(1_000_000), b.scale(10_000), b.scale(10_000))
	fmt.Println("start to first reply:", spread(starts, milliseconds))
	fmt.Printf("p50 per message: %s, empty store %s, ratio %.2f\n", milliseconds(median(full)), milliseconds(median(empty)), float64(median(full))/float64(median(empty)))
	fmt.Printf("CPU per message: %s, empty store %s, ratio %.2f\n",
		milliseconds(median(fullCPU)), milliseconds(median(emptyCPU)), float64(median(fullCPU))/float64(median(emptyCPU)))
	return nil
}

// fillStore writes a store as years of use leave it.
func fillStore(path string, events, sessions, schedules int) error {
	store, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	ctx := context.Background()
	now := time.Now()
	const batch = 5000
	subscription := journal.Subscription{Extension: "orchestrator", Pattern: contract.TopicAgentInput + "orchestrator"}
	if err := journal.Do(ctx, store, func(tx journal.Tx) error { return tx.PutSubscription(&subscription) }); err != nil {
		return err
	}
	payload, err := json.Marshal(contract.AgentInput{Session: "s1", Kind: contract.InputUser, Text: strings.Repeat("well ", 40)})
	if err != nil {
		return err
	}
	for from := 0; from < events; from += batch {
		err := journal.Do(ctx, store, func(tx journal.Tx) error {
			for range min(batch, events-from) {
				e := &busv1.Event{
					Topic: contract.TopicAgentInput + "orchestrator", Key: "s1", Source: contract.KernelSource, Payload: payload,
					CreatedAtUs: now.Add(-time.Hour).UnixMicro(),
				}
				if err := tx.AppendEvent(e); err != nil {
					return err
				}
				d := journal.Delivery{Seq: e.GetSeq(), Subscription: subscription.ID, Key: e.GetKey(), State: journal.Done, SettledAt: now.UnixMicro()}
				if err := tx.AddDelivery(d); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	err = journal.Do(ctx, store, func(tx journal.Tx) error {
		for i := range sessions {
			s := &journal.Session{
				Agent: "orchestrator", Key: fmt.Sprintf("chan:telegram_channel:%d", 1_000_000+i), HistorySeq: 2, CreatedAt: now.UnixMicro(), ActiveAt: now.UnixMicro(),
			}
			if err := tx.PutSession(s); err != nil {
				return err
			}
			rows := []*busv1.Entry{
				{Seq: 1, Kind: contract.EntryInput, InputKind: contract.InputUser, Text: "hello"}, {Seq: 2, Kind: contract.EntryAnswer, Text: "hello"},
			}
			if err := tx.AppendHistory(s.ID, rows); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = journal.Do(ctx, store, func(tx journal.Tx) error {
		for i := range schedules {
			s, err := recurring(i, now)
			if err != nil {
				return err
			}
			if _, err := tx.KVPut("scheduler", fmt.Sprintf("schedule/r%d", i+1), s); err != nil {
				return err
			}
		}
		_, err := tx.KVPut("scheduler", "counter", fmt.Append(nil, schedules))
		return err
	})
	if err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}
	return os.Chmod(path, 0o600)
}

// recurring is a schedule that is due tomorrow at the earliest.
func recurring(i int, now time.Time) ([]byte, error) {
	next := now.Add(24*time.Hour + time.Duration(i)*time.Second).Truncate(time.Second)
	return schedule.Schedule{
		ID: fmt.Sprintf("r%d", i+1), Revision: 1, Kind: "recurring", State: schedule.Active, Message: fmt.Sprintf("reminder %d", i),
		Topic: contract.TopicUserNotify, Timezone: "Europe/Berlin", Cron: fmt.Sprintf("%d %d * * *", i%60, i%24),
		Anchor: now, Next: &next, CreatedAt: now,
	}.Encode()
}
