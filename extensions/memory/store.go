package memory

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	rowPrefix = "memory/"

	// changeKey holds the mark of the newest change. Every commit writes it.
	changeKey = "changed"

	// manyRows is the most rows that are read one by one; more are scanned.
	manyRows = 50

	// keepChange is how long the store remembers an uncommitted change, much
	// longer than the kernel needs to commit a result. The mark of a later commit
	// is unknown, and all rows are read again.
	keepChange = 15 * time.Minute
)

func rowKey(id string) string { return rowPrefix + id }

// store caches the stored rows. A tool returns its changes as effects and is not
// notified of their commit. So every change also writes a mark under changeKey,
// and each use reads that key first. If it has not changed, the cache is valid.
// If the mark is one of this store's, it reads the rows of all its uncommitted
// changes again; otherwise it reads all rows.
type store struct {
	ctx context.Context // until the extension ends
	k   kernel
	log hclog.Logger
	now func() time.Time

	lock    chan struct{} // holds one element while locked; guards the fields below
	seen    int64         // version of changeKey when the rows were read; -1 before
	rows    *rows
	changes map[string]change // by mark
}

// change is a change that was returned and may be committed.
type change struct {
	at   time.Time
	rows map[string]int64 // replaced versions by id
}

func newStore(ctx context.Context, k kernel, log hclog.Logger, now func() time.Time) *store {
	return &store{
		ctx: ctx, k: k, log: log, now: now, lock: make(chan struct{}, 1), seen: -1, changes: map[string]change{},
	}
}

// write returns the effects that store the rows of put and delete those of drop,
// if they still have the versions that were read. It must be called within use.
func (s *store) write(put []row, drop []row) sdk.Effects {
	c := change{at: s.now(), rows: make(map[string]int64, len(put)+len(drop))}
	var effects sdk.Effects
	for _, r := range put {
		c.rows[r.ID] = r.version
		effects = append(effects, sdk.PutAt(rowKey(r.ID), r.Item, r.version).Keep(contract.BlobsOf(r.Attachments)...))
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

// use calls f with the current rows, which include all earlier commits. f may use
// them until it returns. If ctx ends, reading continues in the background, so that
// callers with short timeouts don't restart it each time.
func (s *store) use(ctx context.Context, f func(*rows) error) error {
	select {
	case s.lock <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("read memories: %w", context.Cause(ctx))
	}
	unlock := func() { <-s.lock }
	refreshed := make(chan error, 1)
	go func() { refreshed <- s.refresh(s.ctx) }()
	select {
	case err := <-refreshed:
		defer unlock()
		if err != nil {
			return err
		}
		return f(s.rows)
	case <-ctx.Done():
		go func() {
			if err := <-refreshed; err != nil {
				s.log.Debug("cannot read memories", "error", err)
			}
			unlock()
		}()
		return fmt.Errorf("read memories: %w", context.Cause(ctx))
	}
}

func (s *store) refresh(ctx context.Context) error {
	head, err := s.k.Get(ctx, changeKey)
	if err != nil {
		return fmt.Errorf("read last change of memories: %w", err)
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
		err = s.reread(ctx, again)
	} else {
		err = s.readAll(ctx)
	}
	if err != nil {
		return err
	}
	s.dropFinished()
	s.seen = head.Version
	return nil
}

// dropFinished removes the changes whose rows have changed: they were committed,
// or would now conflict. It also removes old changes.
func (s *store) dropFinished() {
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
		s.load(fresh, v)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read memories: %w", err)
	}
	s.rows = fresh
	s.log.Debug("memories read", "count", len(fresh.byID), "unreadable", len(fresh.unreadable))
	return nil
}

func (s *store) reread(ctx context.Context, ids map[string]bool) error {
	for id := range ids {
		v, err := s.k.Get(ctx, rowKey(id))
		if err != nil {
			return fmt.Errorf("read memory %s: %w", id, err)
		}
		s.load(s.rows, v)
	}
	return nil
}

func (s *store) load(into *rows, v sdk.Value) {
	id := strings.TrimPrefix(v.Key, rowPrefix)
	if v.Version == 0 {
		into.remove(id)
		return
	}
	i, err := item.Decode(v.Value)
	if err == nil && i.ID != id {
		err = fmt.Errorf("decode memory: wrong id %q", i.ID)
	}
	if err != nil {
		s.log.Error("a memory is damaged: forget it to remove it", "id", id, "error", err)
		into.remove(id)
		into.unreadable[id] = broken{version: v.Version, err: err}
		return
	}
	into.set(row{i, v.Version})
}
