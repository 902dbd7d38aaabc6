package sqlite

import (
	"zombiezen.com/go/sqlite"
)

// Inconsistencies of deliveries, in rows and in blocks.
const (
	noEvent        = "unsettled deliveries without their event"
	noSubscription = "unsettled deliveries without their subscription"
	neverAccepted  = "deliveries of events that were never accepted"
	wrongLane      = "unsettled deliveries in another lane than their event"
	twice          = "deliveries both in a row and in a block"
	miscounted     = "blocks with wrong counts"
)

// checkBlocks counts the inconsistencies of blocks.
func checkBlocks(conn *sqlite.Conn) (counts map[string]int, err error) {
	t := &tx{conn: conn}
	counts = map[string]int{}
	last, err := t.LastSeq()
	if err != nil {
		return nil, err
	}
	subscriptions := map[int64]bool{}
	known, err := t.Subscriptions()
	for _, s := range known {
		subscriptions[s.ID] = true
	}
	if err != nil {
		return nil, err
	}
	var b block
	err = t.query(func(stmt *sqlite.Stmt) error {
		b = block{id: stmt.ColumnInt64(0)}
		if err := b.read(t.content(stmt, 3)); err != nil {
			return err
		}
		waiting := b.waiting()
		if stmt.ColumnInt64(1) != b.subscription() || stmt.ColumnInt(2) != waiting.count() {
			counts[miscounted]++
		}
		if !subscriptions[b.subscription()] {
			counts[noSubscription] += waiting.count()
		}
		for i := range b.has.all() {
			if b.seq(i) > last {
				counts[neverAccepted]++
			}
		}
		if err := t.checkRowsOf(&b, counts); err != nil {
			return err
		}
		return t.checkEventsOf(&b, &waiting, counts)
	}, "SELECT id, subscription, open, content FROM delivery_block")
	return counts, err
}

// checkRowsOf counts the deliveries of a block that also have a row.
func (t *tx) checkRowsOf(b *block, counts map[string]int) error {
	return t.query(func(stmt *sqlite.Stmt) error {
		if b.has.get(placeOf(stmt.ColumnInt64(0))) {
			counts[twice]++
		}
		return nil
	}, "SELECT seq FROM delivery WHERE seq >= ? AND seq <= ? AND subscription = ?", b.seq(0), b.seq(blockSize-1),
		b.subscription())
}

// checkEventsOf checks the events of the unsettled deliveries of a block.
func (t *tx) checkEventsOf(b *block, waiting *bitmap, counts map[string]int) error {
	missing := *waiting
	if missing == (bitmap{}) {
		return nil
	}
	err := t.query(func(stmt *sqlite.Stmt) error {
		i := placeOf(stmt.ColumnInt64(0))
		missing.clear(i)
		if waiting.get(i) && !b.loose.get(i) && b.lane[i] != laneHash(stmt.ColumnText(1)) {
			counts[wrongLane]++
		}
		return nil
	}, "SELECT seq, key FROM event WHERE seq >= ? AND seq <= ?", b.seq(0), b.seq(blockSize-1))
	counts[noEvent] += missing.count()
	return err
}
