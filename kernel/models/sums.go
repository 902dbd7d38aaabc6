package models

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/metering"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Kept is for how many days sums are kept.
const Kept = 400

const (
	sumPrefix = "usage/" // of sums in the kernel's own KV, before a metering.Key
	// pruneMost is how many old sums are deleted on a day.
	pruneMost = 2000
)

// Rows returns the sums of the last days, including today, in the order of the
// days, and when the first of these days began.
func (l *Ledger) Rows(ctx context.Context, days int) (rows []metering.Row, from time.Time, err error) {
	if days < 1 || days > Kept {
		return nil, from, fmt.Errorf("%w: %d days: give 1 to %d", contract.ErrInvalid, days, Kept)
	}
	zone := l.directory.Current().Location
	first := time.Now().In(zone).AddDate(0, 0, 1-days)
	from = time.Date(first.Year(), first.Month(), first.Day(), 0, 0, 0, 0, zone)
	err = l.bus.View(ctx, func(r journal.Reader) error {
		return scan(r, sumPrefix, func(r metering.Row) {
			if r.Day >= first.Format(time.DateOnly) {
				rows = append(rows, r)
			}
		})
	})
	return rows, from, err
}

// scan reads the sums whose keys begin with prefix.
func scan(r journal.Reader, prefix string, each func(metering.Row)) error {
	for v, err := range journal.Values(r, contract.KernelSource, prefix, "", 0) {
		if err != nil {
			return err
		}
		key, ok := metering.ParseKey(v.Key[len(sumPrefix):])
		if !ok {
			continue
		}
		row := metering.Row{Key: key}
		if err := v.Decode(&row.Sum); err != nil {
			return err
		}
		each(row)
	}
	return nil
}

// prune deletes the sums that are too old today, at most pruneMost.
func (l *Ledger) prune(today time.Time) {
	first := sumPrefix + today.AddDate(0, 0, -Kept).Format(time.DateOnly)
	l.bus.Commit(bus.Change{Apply: func(tx *bus.Tx) error {
		n := 0
		for v, err := range journal.Values(tx, contract.KernelSource, sumPrefix, "", 0) {
			if n++; err != nil || n > pruneMost || v.Key >= first {
				return err
			}
			if err := tx.KVDelete(contract.KernelSource, v.Key); err != nil {
				return err
			}
		}
		return nil
	}, Done: func(err error) {
		if err != nil && !errors.Is(err, journal.ErrClosed) {
			l.log.Warn("delete old sums of model usage", "error", err)
		}
	}})
}

// use is one completion.
type use struct {
	day    string
	cause  *busv1.Event
	usage  contract.ModelUsage
	notice *notice // nil: none
}

// notice is a message to the owner, sent once for its key.
type notice struct{ key, text string }

// write publishes the event and adds to the sum.
func (u *use) write(tx *bus.Tx) error {
	emit := func() error {
		_, err := tx.Emit(contract.TopicModelUsage, "", u.usage)
		return err
	}
	err := tx.Following(u.cause, emit)
	if errors.Is(err, contract.ErrInvalid) { // the chain of events is too long: begin a new one
		err = tx.Following(nil, emit)
	}
	if err != nil {
		return err
	}
	sumOf := metering.Key{Day: u.day, Agent: u.usage.Agent, Person: u.usage.Person, Model: u.usage.Model}
	key := sumPrefix + sumOf.String()
	stored, err := journal.Load[metering.Sum](tx, contract.KernelSource, key)
	if err != nil {
		return err
	}
	sum := cmp.Or(stored, &metering.Sum{})
	sum.Add(u.usage)
	if err := journal.Save(tx, contract.KernelSource, key, sum); err != nil || u.notice == nil {
		return err
	}
	text, err := json.Marshal(contract.UserNotify{Text: u.notice.text})
	if err != nil {
		return err
	}
	return tx.Following(nil, func() error {
		_, err := tx.Accept(&busv1.Event{
			Topic: contract.TopicUserNotify, Source: contract.KernelSource, Payload: text, DedupeKey: "spending:" + u.notice.key,
		})
		return err
	})
}
