package sqlite

import (
	"zombiezen.com/go/sqlite"
)

// keptBlocks is the approximate number of clean blocks in the writer's cache, 5 KiB
// each.
const keptBlocks = 64

// blocks is the writer's cache of blocks. Dirty ones are written before anything else
// reads them, and before the group is committed.
type blocks struct {
	young, old map[int64]*block // two generations: old ones are dropped next
	dirty      []*block
	buf        []byte
}

func (c *blocks) get(id int64) *block {
	if b := c.young[id]; b != nil {
		return b
	}
	b := c.old[id]
	if b != nil {
		c.young[id] = b
	}
	return b
}

func (c *blocks) add(b *block) {
	if c.young == nil {
		c.young = make(map[int64]*block, keptBlocks)
	}
	c.young[b.id] = b
}

// age drops the old generation if the young one is full. No block is dirty.
func (c *blocks) age() {
	if len(c.young) > keptBlocks {
		c.old, c.young = c.young, make(map[int64]*block, keptBlocks)
	}
}

// drop clears the cache, after a failed write or to free memory.
func (c *blocks) drop() { *c = blocks{buf: c.buf} }

// block returns the block with an id, empty if there is none. The writer's is cached;
// a reader gets its own copy.
func (t *tx) block(id int64) (*block, error) {
	if t.store != nil {
		if b := t.store.blocks.get(id); b != nil {
			return b, nil
		}
	}
	b := &block{id: id}
	err := t.query(func(stmt *sqlite.Stmt) error {
		b.stored = true
		return b.read(t.content(stmt, 0))
	}, "SELECT content FROM delivery_block WHERE id = ?", id)
	if err != nil {
		return nil, err
	}
	if t.store != nil {
		t.store.blocks.add(b)
	}
	return b, nil
}

// holder returns the block that holds a delivery; nil: it has a row, or does not
// exist.
func (t *tx) holder(seq, subscription int64) (*block, error) {
	if subscription < 0 || subscription > maxSubscription {
		return nil, nil
	}
	b, err := t.block(blockOf(seq, subscription))
	if err != nil || !b.has.get(placeOf(seq)) {
		return nil, err
	}
	return b, nil
}

// touch marks a block dirty, before a member changes it.
func (t *tx) touch(b *block) error {
	if err := t.begin(); err != nil {
		return err
	}
	if !b.dirty {
		b.dirty = true
		t.store.blocks.dirty = append(t.store.blocks.dirty, b)
	}
	return nil
}

// flush writes the dirty blocks.
func (t *tx) flush() error {
	if t.store == nil || len(t.store.blocks.dirty) == 0 {
		return nil
	}
	c := &t.store.blocks
	for _, b := range c.dirty {
		if err := t.writeBlock(b); err != nil {
			t.failed = err
			return err
		}
		b.dirty = false
	}
	clear(c.dirty)
	c.dirty = c.dirty[:0]
	c.age()
	return nil
}

func (t *tx) writeBlock(b *block) error {
	if b.has == (bitmap{}) {
		if !b.stored {
			return nil
		}
		b.stored = false
		return t.query(nil, "DELETE FROM delivery_block WHERE id = ?", b.id)
	}
	waiting := b.waiting()
	b.stored = true
	t.store.blocks.buf = b.append(t.store.blocks.buf[:0])
	return t.runHot(hotPutBlock, func(stmt *sqlite.Stmt) {
		stmt.BindInt64(1, b.id)
		stmt.BindInt64(2, b.subscription())
		stmt.BindInt64(3, int64(waiting.count()))
		stmt.BindBytes(4, t.store.blocks.buf)
	})
}

// eachBlock flushes, then reads the blocks that match a condition. A block is valid
// until each returns.
func (t *tx) eachBlock(each func(*block) error, where string, args ...any) error {
	if err := t.flush(); err != nil {
		return err
	}
	var b block
	return t.query(func(stmt *sqlite.Stmt) error {
		b = block{id: stmt.ColumnInt64(0), stored: true}
		if err := b.read(t.content(stmt, 1)); err != nil {
			return err
		}
		return each(&b)
	}, "SELECT id, content FROM delivery_block "+where, args...)
}

// eachBlockOf reads the blocks of all subscriptions for the same events. It uses the
// writer's cache without flushing it.
func (t *tx) eachBlockOf(number int64, each func(*block) error) error {
	first, last := number<<subscriptionBits, number<<subscriptionBits|maxSubscription
	if t.store == nil {
		return t.eachBlock(each, "WHERE id >= ? AND id <= ?", first, last)
	}
	var ids []int64
	for _, b := range t.store.blocks.dirty {
		if b.number() == number && !b.stored {
			ids = append(ids, b.id)
		}
	}
	stored, err := t.numbers("SELECT id FROM delivery_block WHERE id >= ? AND id <= ?", first, last)
	if err != nil {
		return err
	}
	for _, id := range append(ids, stored...) {
		b, err := t.block(id)
		if err == nil {
			err = each(b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// content returns a blob that is valid until the next call.
func (t *tx) content(stmt *sqlite.Stmt, i int) []byte {
	if n := stmt.ColumnLen(i); cap(t.blob) < n {
		t.blob = make([]byte, n, max(n, 2048))
	} else {
		t.blob = t.blob[:n]
	}
	stmt.ColumnBytes(i, t.blob)
	return t.blob
}

// lanes returns the keys of the events of a block at the places of a bitmap.
func (t *tx) lanes(b *block, places *bitmap) (keys [blockSize]string, err error) {
	keyed := places.without(&b.loose)
	first, last := -1, -1
	for i := range keyed.all() {
		if last = i; first < 0 {
			first = i
		}
	}
	if first < 0 {
		return keys, nil
	}
	err = t.query(func(stmt *sqlite.Stmt) error {
		if i := placeOf(stmt.ColumnInt64(0)); keyed.get(i) {
			keys[i] = stmt.ColumnText(1)
		}
		return nil
	}, "SELECT seq, key FROM event WHERE seq >= ? AND seq <= ?", b.seq(first), b.seq(last))
	return keys, err
}
