package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/quiet"
	"github.com/switchboard-run/switchboard/contract/zone"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
)

// In a person's quiet hours their private conversations get only what was asked for in
// them. The rest is held before it is published, so that a reply never waits for it.

// held is a text that waits until the quiet hours of its recipient end.
type held struct {
	ID      int64                `json:"id"`
	Channel string               `json:"channel"`
	Send    contract.ChannelSend `json:"send"`            // not split yet
	Event   int64                `json:"event,omitempty"` // that it follows from
	Since   int64                `json:"since"`           // Unix microseconds
	Until   int64                `json:"until"`           // Unix microseconds
}

const (
	heldPrefix = "held/"
	lastHeld   = "last_held" // its version is the id of the newest text
)

func (h *held) key() string { return fmt.Sprintf(heldPrefix+"%012d", h.ID) }

// over reports whether the quiet hours have ended, or the clock was set to before them.
func (h *held) over(now int64) bool { return h.Until <= now || now < h.Since }

// hold stores a text that comes in the quiet hours of its recipient. Otherwise what was
// held before it goes first. What was possibly sent before does not wait.
func (r *MessageRouter) hold(tx *bus.Tx, to *place, m contract.ChannelSend, options []bus.Option) (bool, error) {
	if m.Asked || m.Kind == contract.SendReply && !to.unasked || m.RemovesDraft() || len(options) > 0 {
		return false, nil
	}
	p, err := people.At(tx, to.channel.ID, m.Conversation)
	if err != nil || p == nil || p.Quiet == "" || slices.Contains(p.Accounts, to.asker) {
		return false, err
	}
	until := quiet.Until(p.Quiet, time.UnixMicro(tx.Now), zone.Or(p.Timezone, r.directory.Current().Location))
	switch {
	case until.IsZero() && to.held:
		return false, nil
	case until.IsZero():
		return false, r.release(tx, func(h held) bool { return h.over(tx.Now) })
	}
	h := held{Channel: to.channel.ID, Send: m, Event: tx.Cause().GetSeq(), Since: tx.Now, Until: until.UnixMicro()}
	if h.ID, err = tx.KVPut(contract.KernelSource, lastHeld, nil); err != nil {
		return false, err
	}
	keeper := journal.Keeper{Kind: journal.KeptByValue, Owner: contract.KernelSource, Key: h.key()}
	return true, errors.Join(save(tx, h.key(), h), tx.KeepBlobs(keeper, contract.BlobsOf(m.Attachments)))
}

// Release sends what was held until now.
func (r *MessageRouter) Release(ctx context.Context, b *bus.Bus, now time.Time) error {
	due := func(h held) bool { return h.over(now.UnixMicro()) }
	over := false
	err := b.View(ctx, func(j journal.Reader) error {
		all, err := journal.All[held](j, contract.KernelSource, heldPrefix)
		over = slices.ContainsFunc(all, due)
		return err
	})
	if err != nil || !over {
		return err
	}
	return b.Do(func(tx *bus.Tx) error { return r.release(tx, due) })
}

// release sends what is due of what was held, in order, or holds it again if the quiet
// hours of its recipient have changed. What is for a channel that does not exist now is
// kept.
func (r *MessageRouter) release(tx *bus.Tx, due func(held) bool) error {
	all, err := journal.All[held](tx, contract.KernelSource, heldPrefix)
	defer func(a *bus.Actor) { tx.Actor = a }(tx.Actor)
	tx.Actor = bus.Kernel // which keeps the files of the texts
	for _, h := range all {
		c := r.directory.Current().Channel(h.Channel)
		if err != nil || c == nil || !due(h) {
			continue
		}
		cause, errEvent := tx.Event(h.Event)
		err = errors.Join(errEvent, tx.Following(cause, func() error {
			to := &place{channel: c, address: h.Send.Conversation, thread: h.Send.Thread, held: true}
			return r.showElsewhere(tx, to, h.Send)
		}), tx.KVDelete(contract.KernelSource, h.key()))
	}
	return err
}

// setting answers /timezone and /quiet. A change also decides again about what is held.
func (r *MessageRouter) setting(tx *bus.Tx, q request, name, rest string) (said string, err error) {
	p, before, in := q.person, *q.person, zone.Or(q.person.Timezone, r.directory.Current().Location)
	if name == "quiet" {
		p.Quiet, said = command.Quiet(q.Language, rest, p.Quiet, in)
	} else {
		p.Timezone, said = command.Timezone(q.Language, rest, p.Timezone, in, time.UnixMicro(tx.Now))
	}
	if p.Quiet == before.Quiet && p.Timezone == before.Timezone {
		return said, nil
	}
	return said, errors.Join(people.Change(tx, p), r.release(tx, func(held) bool { return true }))
}
