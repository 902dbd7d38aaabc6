package hooks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"time"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	cursorKey   = "webhooks/cursor"
	followAgain = time.Second
	cursorEvery = 1000 // events without a match, after which the cursor is stored
)

// cursor is how far the events were read.
type cursor struct {
	After int64 `json:"after"` // the last event that was read
	// From is the last event before a webhook was set up, by its name.
	From map[string]int64 `json:"from"`
}

// follow queues the events of webhooks until ctx is done.
func (h *Hooks) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if err := h.read(ctx); ctx.Err() == nil {
			h.o.Log.Warn("read events for webhooks: it is tried again", "error", err)
		}
		timer := time.NewTimer(followAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// read reads events from where it was until something fails, and returns what.
func (h *Hooks) read(ctx context.Context) error {
	at, err := h.begin(ctx)
	if err != nil {
		return err
	}
	events, err := h.o.Read.Events(ctx, &adminv1.EventsRequest{After: at.After, Follow: true})
	if err != nil {
		return err
	}
	stored := at.After
	for {
		e, err := events.Recv()
		if err != nil {
			return err
		}
		at.After = e.GetSeq()
		effects := h.queue(at, e)
		if len(effects) == 0 && at.After-stored < cursorEvery {
			continue
		}
		if _, err := h.o.Store.Commit(ctx, append(effects, sdk.Put(cursorKey, at))...); err != nil {
			return err
		}
		stored = at.After
	}
}

// queue returns the effects that queue an event for its webhooks.
func (h *Hooks) queue(at cursor, e *busv1.Event) (effects sdk.Effects) {
	for name, to := range h.out {
		if e.GetSeq() <= at.From[name] || !to.wants(e) {
			continue
		}
		var options []sdk.PublishOption
		if e.GetKey() != "" {
			options = append(options, sdk.Key(laneOf(name, e.GetKey())))
		}
		options = append(options, sdk.Dedupe("webhook/"+name+"/"+e.GetId()))
		effects = append(effects, sdk.Publish(TopicWebhook, sending{name, e.GetId()}, options...))
	}
	return effects
}

// begin returns the cursor, with the webhooks that there are now.
func (h *Hooks) begin(ctx context.Context) (at cursor, err error) {
	v, err := h.o.Store.Get(ctx, cursorKey)
	if err == nil && v.Version > 0 {
		err = v.Decode(&at)
	}
	if err != nil {
		return at, err
	}
	newest, err := h.newest(ctx)
	if err != nil {
		return at, err
	}
	from, kept := map[string]int64{}, false
	for name := range h.out {
		since, known := at.From[name]
		if !known {
			since = newest
		}
		from[name], kept = since, kept || known
	}
	if at.From = from; !kept {
		at.After = newest
	}
	_, err = h.o.Store.Commit(ctx, sdk.Put(cursorKey, at))
	return at, err
}

func (h *Hooks) newest(ctx context.Context) (seq int64, err error) {
	events, err := h.o.Read.Events(ctx, &adminv1.EventsRequest{Limit: 1})
	for err == nil {
		e, errRecv := events.Recv()
		if err = errRecv; err == nil {
			seq = e.GetSeq()
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return seq, err
}

// laneOf is the key of a webhook's events with a key: another webhook doesn't wait for them.
func laneOf(name, key string) string {
	sum := sha256.Sum256([]byte(key))
	return name + "/" + hex.EncodeToString(sum[:16])
}
