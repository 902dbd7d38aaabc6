package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// change collects the effects of one commit: rows that were read, which are
// written only if their version is unchanged, and extra effects.
type change struct {
	*tasks
	ctx      context.Context
	by       string
	rows     map[string]*row
	order    []string
	extra    sdk.Effects
	notified map[string]bool
	now      time.Time
	seq      int64 // from nextSeq
}

type row struct {
	value   any // nil: does not exist
	version int64
	written bool
}

// change begins a change; by identifies its cause and is the same on a retry.
func (t *tasks) change(ctx context.Context, by string) *change {
	t.dropClaims(by)
	return &change{
		tasks: t, ctx: ctx, by: by, rows: map[string]*row{}, notified: map[string]bool{},
		now: time.Now().UTC(), seq: t.nextSeq(),
	}
}

// read returns a row as this change sees it; nil: it does not exist.
func read[T any](c *change, key string) (*T, error) {
	if r := c.rows[key]; r != nil {
		v, _ := r.value.(*T)
		return v, nil
	}
	stored, err := c.k.Get(c.ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	stored.Key = key
	return track[T](c, stored)
}

// track records a row of a page as read.
func track[T any](c *change, stored sdk.Value) (*T, error) {
	if r := c.rows[stored.Key]; r != nil {
		v, _ := r.value.(*T)
		return v, nil
	}
	r := &row{version: stored.Version}
	if stored.Version != 0 {
		v := new(T)
		if err := stored.Decode(v); err != nil {
			return nil, fmt.Errorf("decode %s: %w", stored.Key, err)
		}
		r.value = v
	}
	c.rows[stored.Key], c.order = r, append(c.order, stored.Key)
	v, _ := r.value.(*T)
	return v, nil
}

// readOrNew is read, but returns an empty value for a row that does not exist.
func readOrNew[T any](c *change, key string) (*T, error) {
	v, err := read[T](c, key)
	if v == nil && err == nil {
		v = new(T)
	}
	return v, err
}

// write sets a row that was read, or that must not exist yet; nil deletes it.
func (c *change) write(key string, value any) {
	r := c.rows[key]
	if r == nil {
		r = &row{}
		c.rows[key], c.order = r, append(c.order, key)
	}
	r.value, r.written = value, true
}

// removes reports whether this change deletes a row.
func (c *change) removes(key string) bool {
	r := c.rows[key]
	return r != nil && r.written && r.value == nil
}

// effect adds extra effects.
func (c *change) effect(e ...sdk.Effect) { c.extra = append(c.extra, e...) }

// notifyWaiters wakes the waiters of a tree after the commit.
func (c *change) notifyWaiters(root string) {
	if c.notified[root] || !c.hasWaiters(root) {
		return
	}
	c.notified[root] = true
	c.effect(sdk.Publish(TopicChanged, changed{Root: root}))
}

// effects returns all effects of the change, for one commit.
func (c *change) effects() sdk.Effects {
	var all sdk.Effects
	for _, key := range c.order {
		switch r := c.rows[key]; {
		case !r.written:
		case r.value != nil:
			all = append(all, sdk.PutAt(key, r.value, r.version))
		case r.version != 0:
			all = append(all, sdk.DeleteAt(key, r.version))
		}
	}
	return append(all, c.extra...)
}

// commit commits the change without a tool result.
func (c *change) commit() error {
	if all := c.effects(); len(all) > 0 {
		return c.k.Commit(c.ctx, all...)
	}
	return nil
}

// errStopScan ends a scan early.
var errStopScan = errors.New("stop scan")

// scan calls f with each row of a prefix, in key order, until f
// returns errStopScan.
func (t *tasks) scan(ctx context.Context, prefix string, f func(sdk.Value) error) error {
	for after := ""; ; {
		page, more, err := t.k.Page(ctx, prefix, after, 0)
		if err != nil {
			return fmt.Errorf("read %s: %w", prefix, err)
		}
		for _, v := range page {
			after = v.Key
			if err := f(v); errors.Is(err, errStopScan) {
				return nil
			} else if err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

// any reports whether a prefix has rows.
func (c *change) any(prefix string) (bool, error) {
	page, _, err := c.k.Page(c.ctx, prefix, "", 1)
	if err != nil {
		err = fmt.Errorf("read %s: %w", prefix, err)
	}
	return len(page) > 0, err
}

// each calls f with each task of a root, or of all roots if it is empty.
func (t *tasks) each(ctx context.Context, root string, f func(*Task) error) error {
	prefix := taskPrefix
	if root != "" {
		prefix = taskKey(root, "")
	}
	return t.scan(ctx, prefix, func(v sdk.Value) error {
		task := &Task{}
		if err := v.Decode(task); err != nil {
			t.log.Error("stored task cannot be decoded", "key", v.Key, "error", err)
			return nil
		}
		return f(task)
	})
}
