package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// stored measures the cost of a large store: the time of a start, a message compared with one
// on an empty store, the time of commands, and the effect of pruning on messages.
func stored(b *bench) error {
	full, err := newBed()
	if err != nil {
		return err
	}
	defer full.close()
	empty, err := newBed()
	if err != nil {
		return err
	}
	defer empty.close()
	for _, d := range []*bed{full, empty} { // a nightly backup would start two minutes after the kernel
		config := filepath.Join(d.home, "config.yaml")
		before, err := os.ReadFile(config)
		if err != nil {
			return err
		}
		if err := os.WriteFile(config, append(before, "backup: {nightly: false}\n"...), 0o600); err != nil {
			return err
		}
	}
	path := filepath.Join(full.home, "switchboard.db")
	events, others := b.scale(b.stored), b.scale(10_000)
	began := time.Now()
	if err := fillStore(path, events, others, others); err != nil {
		return err
	}
	fmt.Printf("with %d settled events, %d sessions, %d schedules: %s, written in %s\n",
		events, others, others, humanize.IBytes(fileSize(path)), time.Since(began).Round(time.Second))
	if err := startStored(b, full, empty); err != nil {
		return err
	}
	if err := backupStored(b, full, empty); err != nil {
		return err
	}
	return pruneStored(b, full, empty)
}

// startStored compares starts and messages on both.
func startStored(b *bench, full, empty *bed) error {
	beds := []*bed{empty, full}
	var starts, p50, cpu [2][]time.Duration
	var memory [2][]int64
	for range min(b.rounds, 3) {
		for i, d := range beds {
			if err := forget(filepath.Join(d.home, "switchboard.db")); err != nil {
				return err
			}
			d.say(1, "good morning")
			began := time.Now()
			if err := d.start(b.binary); err != nil {
				return err
			}
			if _, err := d.reply(context.Background()); err != nil {
				return err
			}
			starts[i] = append(starts[i], time.Since(began))
			if err := d.warm(); err != nil {
				return err
			}
			p, err := pace(d, b.scale(500))
			if err != nil {
				return err
			}
			kib, _ := d.pss()
			p50[i], cpu[i], memory[i] = append(p50[i], p.p50), append(cpu[i], p.cpu), append(memory[i], kib)
			if i == 1 && len(starts[i]) == 1 {
				if err := d.commands(b.binary); err != nil {
					return err
				}
			}
			if err := d.stop(); err != nil {
				return err
			}
		}
	}
	fmt.Println("start to first reply:", spread(starts[1], milliseconds))
	fmt.Println("the same, empty store:", spread(starts[0], milliseconds))
	fmt.Printf("p50 per message: %s, empty store %s, ratio %.2f\n", milliseconds(median(p50[1])),
		milliseconds(median(p50[0])), float64(median(p50[1]))/float64(median(p50[0])))
	fmt.Printf("CPU per message: %s, empty store %s, ratio %.2f\n", milliseconds(median(cpu[1])),
		milliseconds(median(cpu[0])), float64(median(cpu[1]))/float64(median(cpu[0])))
	fmt.Printf("PSS after the messages: %.1f MiB, empty store %.1f MiB\n", float64(median(memory[1]))/1024,
		float64(median(memory[0]))/1024)
	return nil
}

// commands measures commands that read the store.
func (d *bed) commands(binary string) error {
	var took []string
	for _, line := range []string{"status", "doctor", "events tail", "events tail --topic no.such.topic", "events dead",
		"trace e1", "sessions list", "tasks list", "schedules list", "usage", "backup list"} {
		began := time.Now()
		c := exec.Command(binary, strings.Fields(line)...)
		c.Env = d.kernel.Env
		err := c.Run()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) { // doctor and trace exit with 1 on findings
			return fmt.Errorf("%s: %w", line, err)
		}
		took = append(took, fmt.Sprintf("%s %.0f ms", line, float64(time.Since(began))/float64(time.Millisecond)))
	}
	fmt.Println("commands:", strings.Join(took, ", "))
	return nil
}

// fillStore writes a store as after years of use: every event is old enough to be pruned.
// One in five has a dedupe key, like events from outside.
func fillStore(path string, events, sessions, schedules int) error {
	store, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	ctx := context.Background()
	now := time.Now()
	old := now.Add(-90 * 24 * time.Hour)
	const batch = 5000
	subscription := journal.Subscription{Extension: "orchestrator", Pattern: contract.TopicAgentInput + "orchestrator"}
	if err := journal.Do(ctx, store, func(tx journal.Tx) error { return tx.PutSubscription(&subscription) }); err != nil {
		return err
	}
	payload, err := json.Marshal(contract.AgentInput{Session: "s1", Kind: contract.InputUser,
		Text: strings.Repeat("well ", 40)})
	if err != nil {
		return err
	}
	for from := 0; from < events; from += batch {
		err := journal.Do(ctx, store, func(tx journal.Tx) error {
			for i := range min(batch, events-from) {
				e := &busv1.Event{
					Topic: contract.TopicAgentInput + "orchestrator", Key: "s1", Source: contract.KernelSource, Payload: payload,
					CreatedAtUs: old.UnixMicro() + int64(from+i),
				}
				if i%5 == 0 {
					e.DedupeKey = fmt.Sprint("update-", 100_000_000+from+i)
				}
				if err := tx.AppendEvent(e); err != nil {
					return err
				}
				d := journal.Delivery{Seq: e.GetSeq(), Subscription: subscription.ID, Key: e.GetKey(), State: journal.Done,
					SettledAt: e.GetCreatedAtUs() + 1000}
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
				Agent: "orchestrator", Key: fmt.Sprintf("chan:telegram_channel:%d", 1_000_000+i), HistorySeq: 2,
				CreatedAt: now.UnixMicro(), ActiveAt: now.UnixMicro(),
			}
			if err := tx.PutSession(s); err != nil {
				return err
			}
			rows := []*busv1.Entry{
				{Seq: 1, Kind: contract.EntryInput, InputKind: contract.InputUser, Text: "hello"},
				{Seq: 2, Kind: contract.EntryAnswer, Text: "hello"},
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

// recurring returns a schedule that is due tomorrow at the earliest.
func recurring(i int, now time.Time) ([]byte, error) {
	next := now.Add(24*time.Hour + time.Duration(i)*time.Second).Truncate(time.Second)
	return schedule.Schedule{
		ID: fmt.Sprintf("r%d", i+1), Revision: 1, Kind: "recurring", State: schedule.Active,
		Message: fmt.Sprintf("reminder %d", i),
		Topic:   contract.TopicUserNotify, Timezone: "Europe/Berlin", Cron: fmt.Sprintf("%d %d * * *", i%60, i%24),
		Anchor: now, Next: &next, CreatedAt: now,
	}.Encode()
}
