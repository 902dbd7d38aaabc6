package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// change is what one commit changes: rows that were read, and are written if
// nobody has written them since, and further effects.
type change struct {
	*tasks
	ctx     context.Context
	by      string
	rows    map[string]*row
	order   []string
	further sdk.Effects
	poked   map[string]bool
	now     time.Time
	began   int64 // a number that rises
}

type row struct {
	value   any // nil: it does not exist
	version int64
	written bool
}

// change begins a change; by names what it is made for, and is the same when that
// is tried again.
func (t *tasks) change(ctx context.Context, by string) *change {
	t.unclaim(by)
	return &change{tasks: t, ctx: ctx, by: by, rows: map[string]*row{}, poked: map[string]bool{}, now: time.Now().UTC(), began: t.number()}
}

// read is a row as this change sees it; nil: it does not exist.
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
	return seen[T](c, stored)
}

// seen has a row that a page holds count as read.
func seen[T any](c *change, stored sdk.Value) (*T, error) {
	if r := c.rows[stored.Key]; r != nil {
		v, _ := r.value.(*T)
		return v, nil
	}
	r := &row{version: stored.Version}
	if stored.Version != 0 {
		v := new(T)
		if err := stored.Decode(v); err != nil {
			return nil, fmt.Errorf("what is stored as %s cannot be read: %w", stored.Key, err)
		}
		r.value = v
	}
	c.rows[stored.Key], c.order = r, append(c.order, stored.Key)
	v, _ := r.value.(*T)
	return v, nil
}

// readOrNew is read with an empty row in place of one that does not exist.
func readOrNew[T any](c *change, key string) (*T, error) {
	v, err := read[T](c, key)
	if v == nil && err == nil {
		v = new(T)
	}
	return v, err
}

// write writes a row that was read, or one that does not exist; nil removes it.
func (c *change) write(key string, value any) {
	r := c.rows[key]
	if r == nil {
		r = &row{}
		c.rows[key], c.order = r, append(c.order, key)
	}
	r.value, r.written = value, true
}

// removes says whether this change removes a row.
func (c *change) removes(key string) bool {
	r := c.rows[key]
	return r != nil && r.written && r.value == nil
}

// effect adds a further effect.
func (c *change) effect(e ...sdk.Effect) { c.further = append(c.further, e...) }

// poke has those who wait in a tree look again once this is committed.
func (c *change) poke(root string) {
	if c.poked[root] || !c.anyWaits(root) {
		return
	}
	c.poked[root] = true
	c.effect(sdk.Publish(TopicChanged, changed{Root: root}))
}

// effects is the change as one commit.
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
	return append(all, c.further...)
}

// commit makes the changes now, without a result.
func (c *change) commit() error {
	if all := c.effects(); len(all) > 0 {
		return c.k.Commit(c.ctx, all...)
	}
	return nil
}

// errEnough ends a scan.
var errEnough = errors.New("enough")

// scan calls f with every row of a prefix, in the order of their keys, until f
// returns errEnough.
func (t *tasks) scan(ctx context.Context, prefix string, f func(sdk.Value) error) error {
	for after := ""; ; {
		page, more, err := t.k.Page(ctx, prefix, after, 0)
		if err != nil {
			return fmt.Errorf("read %s: %w", prefix, err)
		}
		for _, v := range page {
			after = v.Key
			if err := f(v); errors.Is(err, errEnough) {
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

// any says whether there is a row of a prefix.
func (c *change) any(prefix string) (bool, error) {
	page, _, err := c.k.Page(c.ctx, prefix, "", 1)
	if err != nil {
		err = fmt.Errorf("read %s: %w", prefix, err)
	}
	return len(page) > 0, err
}

// each calls f with every task of a root; of all roots, if it is empty.
func (t *tasks) each(ctx context.Context, root string, f func(*Task) error) error {
	prefix := taskPrefix
	if root != "" {
		prefix = taskKey(root, "")
	}
	return t.scan(ctx, prefix, func(v sdk.Value) error {
		task := &Task{}
		if err := v.Decode(task); err != nil {
			t.log.Error("a stored task cannot be read", "key", v.Key, "error", err)
			return nil
		}
		return f(task)
	})
}
