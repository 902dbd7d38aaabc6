package memory

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	rowPrefix = "memory/"

	// changeKey holds the mark of the newest change: every commit writes it.
	changeKey = "changed"

	// manyRows is how many rows are read one by one; more are scanned.
	manyRows = 50

	// keepChange is how long the rows of a change that was never seen committed
	// are looked at: far longer than the kernel takes to commit a result. A
	// change that comes later has an unknown mark, and everything is read again.
	keepChange = 15 * time.Minute
)

func rowKey(id string) string { return rowPrefix + id }

// store follows the stored rows. A change is an effect that is returned with a
// result, and nobody tells whether it was committed. So every commit also
// writes a mark under changeKey. Whoever reads looks at that key first: as long
// as it has not changed, nothing has; when it has, the rows of all changes that
// were returned are read again; and when the mark is not one that this store
// has made, all rows are.
type store struct {
	ctx context.Context // until the extension ends
	k   kernel
	log hclog.Logger
	now func() time.Time

	lock    chan struct{} // holds one while somebody uses what follows
	seen    int64         // version of changeKey that the rows are as new as; -1: nothing was read
	rows    *rows
	changes map[string]change // by mark
}

// change is what a returned result writes if it is committed.
type change struct {
	at   time.Time
	rows map[string]int64 // id -> the version that it replaces
}

func newStore(ctx context.Context, k kernel, log hclog.Logger, now func() time.Time) *store {
	return &store{ctx: ctx, k: k, log: log, now: now, lock: make(chan struct{}, 1), seen: -1, changes: map[string]change{}}
}

// write is the effects that store what put holds and delete what drop holds,
// where they still have the versions that were read. It is called by what use
// calls.
func (s *store) write(put []row, drop []row) sdk.Effects {
	c := change{at: s.now(), rows: make(map[string]int64, len(put)+len(drop))}
	var effects sdk.Effects
	for _, r := range put {
		c.rows[r.ID] = r.version
		effects = append(effects, sdk.PutAt(rowKey(r.ID), r.Item, r.version))
	}
	for _, r := range drop {
		c.rows[r.ID] = r.version
		effects = append(effects, sdk.DeleteAt(rowKey(r.ID), r.version))
	}
	if len(effects) == 0 {
		return nil
	}
	mark := rand.Text()
	s.changes[mark] = c
	return append(effects, sdk.Put(changeKey, mark))
}

// use calls f with the rows as they are stored now: at least all that was
// committed before. They are f's until it returns. Reading goes on when ctx ends
// meanwhile, so that whoever has little time does not begin it again and again.
func (s *store) use(ctx context.Context, f func(*rows) error) error {
	select {
	case s.lock <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("the stored memories are still being read: %w", context.Cause(ctx))
	}
	unlock := func() { <-s.lock }
	followed := make(chan error, 1)
	go func() { followed <- s.follow(s.ctx) }()
	select {
	case err := <-followed:
		defer unlock()
		if err != nil {
			return err
		}
		return f(s.rows)
	case <-ctx.Done():
		go func() {
			if err := <-followed; err != nil {
				s.log.Debug("reading the memories failed", "error", err)
			}
			unlock()
		}()
		return fmt.Errorf("the stored memories are still being read: %w", context.Cause(ctx))
	}
}

func (s *store) follow(ctx context.Context) error {
	head, err := s.k.Get(ctx, changeKey)
	if err != nil {
		return fmt.Errorf("read what changed last: %w", err)
	}
	if head.Version == s.seen {
		return nil
	}
	var mark string
	known := false
	if s.seen >= 0 && head.Version > 0 && head.Decode(&mark) == nil {
		_, known = s.changes[mark]
	}
	again := map[string]bool{}
	for _, c := range s.changes {
		for id := range c.rows {
			again[id] = true
		}
	}
	if known && len(again) <= manyRows {
		err = s.readAgain(ctx, again)
	} else {
		err = s.readAll(ctx)
	}
	if err != nil {
		return err
	}
	s.settle()
	s.seen = head.Version
	return nil
}

// settle forgets the changes whose rows have changed: they, or others that they
// would now conflict with, were committed.
func (s *store) settle() {
	old := s.now().Add(-keepChange)
	maps.DeleteFunc(s.changes, func(_ string, c change) bool {
		for id, version := range c.rows {
			if s.rows.version(id) != version {
				return true
			}
		}
		return c.at.Before(old)
	})
}

func (s *store) readAll(ctx context.Context) error {
	fresh := newRows()
	err := s.k.Scan(ctx, rowPrefix, func(v sdk.Value) error {
		s.take(fresh, v)
		return nil
	})
	if err != nil {
		return fmt.Errorf("scan the stored memories: %w", err)
	}
	s.rows = fresh
	s.log.Debug("memories read", "count", len(fresh.byID), "unreadable", len(fresh.unreadable))
	return nil
}

func (s *store) readAgain(ctx context.Context, ids map[string]bool) error {
	for id := range ids {
		v, err := s.k.Get(ctx, rowKey(id))
		if err != nil {
			return fmt.Errorf("read memory %s: %w", id, err)
		}
		s.take(s.rows, v)
	}
	return nil
}

func (s *store) take(into *rows, v sdk.Value) {
	id := strings.TrimPrefix(v.Key, rowPrefix)
	if v.Version == 0 {
		into.remove(id)
		return
	}
	i, err := item.Decode(v.Value)
	if err == nil && i.ID != id {
		err = fmt.Errorf("it says that it is %q", i.ID)
	}
	if err != nil {
		s.log.Error("a stored memory cannot be read: forget it to remove it", "id", id, "error", err)
		into.remove(id)
		into.unreadable[id] = broken{version: v.Version, err: err}
		return
	}
	into.set(row{i, v.Version})
}
