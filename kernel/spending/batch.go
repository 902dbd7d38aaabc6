package spending

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
)

// contextOfStore is that of reading one day: the store ends it when it closes.
var contextOfStore = context.Background()

// batch is what one commit records.
type batch struct {
	uses   []use
	sums   map[key]Sum
	notice *notice
}

// use is one completion.
type use struct {
	cause *busv1.Event
	usage contract.ModelUsage
}

// notice is what the owner is told, once a day.
type notice struct{ day, text string }

func (b *batch) add(k key, u use) {
	b.uses = append(b.uses, u)
	s := b.sums[k]
	s.add(u.usage)
	b.sums[k] = s
}

func (b *batch) rows() []use {
	if b == nil {
		return nil
	}
	return b.uses
}

// write publishes the events and adds to the sums.
func (b *batch) write(tx *bus.Tx) error {
	for _, u := range b.uses {
		emit := func() error {
			_, err := tx.Emit(contract.TopicModelUsage, "", u.usage)
			return err
		}
		err := tx.Following(u.cause, emit)
		if errors.Is(err, contract.ErrInvalid) { // its chain of events is too long: it stands for itself
			err = tx.Following(nil, emit)
		}
		if err != nil {
			return err
		}
	}
	for k, s := range b.sums {
		stored, err := tx.KVGet(contract.KernelSource, k.String())
		if err != nil {
			return err
		}
		before, err := parseSum(stored.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
		if _, err := tx.KVPut(contract.KernelSource, k.String(), s.plus(before).bytes()); err != nil {
			return err
		}
	}
	if b.notice == nil {
		return nil
	}
	text, err := json.Marshal(contract.UserNotify{Text: b.notice.text})
	if err != nil {
		return err
	}
	return tx.Following(nil, func() error {
		_, err := tx.Accept(&busv1.Event{
			Topic: contract.TopicUserNotify, Source: contract.KernelSource, Payload: text, DedupeKey: "spending:" + b.notice.day,
		})
		return err
	})
}
