package sqlite

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

const deliveryColumns = "seq, subscription, key, state, attempts, not_before, started_at, settled_at, uncertain, " +
	"reason, provider_id, conversation, rank, resubmitted"

func scanDelivery(stmt *sqlite.Stmt) journal.Delivery {
	return journal.Delivery{
		Seq: stmt.ColumnInt64(0), Subscription: stmt.ColumnInt64(1), Key: stmt.ColumnText(2),
		State: journal.DeliveryState(stmt.ColumnInt64(3)), Attempts: stmt.ColumnInt(4), NotBefore: stmt.ColumnInt64(5),
		StartedAt: stmt.ColumnInt64(6), SettledAt: stmt.ColumnInt64(7), Uncertain: stmt.ColumnBool(8),
		Reason:     stmt.ColumnText(9),
		ProviderID: stmt.ColumnText(10), Conversation: stmt.ColumnInt64(11), Rank: stmt.ColumnInt64(12),
		Resubmitted: stmt.ColumnInt64(13),
	}
}

// rows returns the deliveries with a row of their own that match a condition.
func (t *tx) rows(query string, args ...any) (ds []journal.Delivery, err error) {
	err = t.query(func(stmt *sqlite.Stmt) error {
		ds = append(ds, scanDelivery(stmt))
		return nil
	}, "SELECT "+deliveryColumns+" FROM delivery WHERE "+query, args...)
	return ds, err
}

func (t *tx) Delivery(seq, subscription int64) (*journal.Delivery, error) {
	b, err := t.holder(seq, subscription)
	if err != nil {
		return nil, err
	}
	if b != nil {
		d := b.delivery(placeOf(seq))
		d.Key, err = t.keyOf(b, placeOf(seq))
		return &d, err
	}
	ds, err := t.rows("seq = ? AND subscription = ?", seq, subscription)
	if err != nil || len(ds) == 0 {
		return nil, err
	}
	return &ds[0], nil
}

// keyOf returns the key of one delivery of a block.
func (t *tx) keyOf(b *block, i int) (key string, err error) {
	if b.loose.get(i) {
		return "", nil
	}
	err = t.query(func(stmt *sqlite.Stmt) error {
		key = stmt.ColumnText(0)
		return nil
	}, "SELECT key FROM event WHERE seq = ?", b.seq(i))
	return key, err
}

func (t *tx) Deliveries(f journal.DeliveryFilter) ([]journal.Delivery, error) {
	where := []string{"1"}
	var args []any
	if f.Seq > 0 {
		where, args = append(where, "seq = +?"), append(args, f.Seq)
	}
	if f.After > 0 {
		where, args = append(where, "seq > ?"), append(args, f.After)
	}
	if f.Before > 0 {
		where, args = append(where, "seq < ?"), append(args, f.Before)
	}
	if f.Subscription > 0 {
		where, args = append(where, "subscription = +?"), append(args, f.Subscription)
	}
	if f.ProviderID != "" {
		where, args = append(where, "provider_id = +?"), append(args, f.ProviderID)
	}
	unsettled := len(f.States) > 0 && slices.Max(f.States) < journal.Done
	if len(f.States) > 0 {
		states := make([]string, len(f.States))
		for i, s := range f.States {
			states[i] = "state = " + strconv.Itoa(int(s)) // literal: lets the partial indexes be used
		}
		where = append(where, "("+strings.Join(states, " OR ")+")")
		if unsettled {
			where = append(where, "state < 2") // as in the index
		}
	}
	f.Limit = limitOr(f.Limit, 100)
	args = append(args, f.Limit)
	ds, err := t.rows(strings.Join(where, " AND ")+" ORDER BY seq DESC LIMIT +?", args...)
	if err != nil || f.ProviderID != "" || len(f.States) > 0 && !slices.Contains(f.States, journal.Pending) &&
		!slices.Contains(f.States, journal.Done) {
		return ds, err // blocks have no such deliveries
	}
	inBlocks, err := t.inBlocks(f, unsettled)
	if err != nil || len(inBlocks) == 0 {
		return ds, err
	}
	ds = append(ds, inBlocks...)
	slices.SortFunc(ds, func(a, b journal.Delivery) int {
		return cmp.Or(cmp.Compare(b.Seq, a.Seq), cmp.Compare(a.Subscription, b.Subscription))
	})
	return ds[:min(len(ds), f.Limit)], nil
}

// inBlocks returns matching deliveries of blocks, newest blocks first, at least
// f.Limit if there are that many.
func (t *tx) inBlocks(f journal.DeliveryFilter, unsettled bool) (ds []journal.Delivery, err error) {
	var where string
	var args []any
	add := func(cond string, arg any) { where, args = where+" AND "+cond, append(args, arg) }
	if f.After > 0 {
		add("id >= ?", blockOf(f.After+1, 0))
	}
	if f.Before > 0 {
		add("id <= ?", blockOf(f.Before-1, maxSubscription))
	}
	if f.Subscription > 0 {
		add("subscription = +?", f.Subscription)
	}
	where = "WHERE 1" + where
	if unsettled {
		where = "INDEXED BY delivery_block_open " + where + " AND open > 0"
	}
	wants := func(s journal.DeliveryState) bool { return len(f.States) == 0 || slices.Contains(f.States, s) }
	waiting, done, number := wants(journal.Pending), wants(journal.Done), int64(-1)
	visit := func(b *block) error {
		if b.number() != number && len(ds) >= f.Limit {
			return errStop
		}
		if f.Subscription > 0 && b.subscription() != f.Subscription {
			return nil
		}
		number = b.number()
		var found bitmap
		for i := range b.has.all() {
			seq, isDone := b.seq(i), b.done.get(i)
			if (f.Seq == 0 || seq == f.Seq) && seq > f.After && (f.Before == 0 || seq < f.Before) &&
				(isDone && done || !isDone && waiting) {
				found.set(i)
			}
		}
		keys, err := t.lanes(b, &found)
		for i := range found.all() {
			d := b.delivery(i)
			d.Key = keys[i]
			ds = append(ds, d)
		}
		return err
	}
	if f.Seq > 0 {
		err = t.eachBlockOf(numberOf(f.Seq), visit)
		return ds, err
	}
	err = t.eachBlock(visit, where+" ORDER BY id DESC", args...)
	return ds, err
}

func (t *tx) Pending(each func(journal.Delivery) bool) error {
	subscriptions, err := t.busySubscriptions()
	if err != nil {
		return err
	}
	goOn := true
	offer := func(d journal.Delivery) bool {
		goOn = goOn && each(d)
		return goOn
	}
	for _, s := range subscriptions {
		if err := t.pendingOf(s, offer); err != nil || !goOn {
			return err
		}
	}
	return nil
}

// pendingOf offers the pending deliveries of a subscription by rank, until offer
// returns false.
func (t *tx) pendingOf(subscription int64, offer func(journal.Delivery) bool) error {
	rows, err := t.rows("state < 2 AND subscription = +? ORDER BY rank", subscription)
	if err != nil {
		return err
	}
	err = t.eachBlock(func(b *block) error {
		waiting := b.waiting()
		keys, err := t.lanes(b, &waiting)
		if err != nil {
			return err
		}
		for i := range waiting.all() {
			d := b.delivery(i)
			d.Key = keys[i]
			for len(rows) > 0 && rows[0].Rank < d.Rank && offer(rows[0]) {
				rows = rows[1:]
			}
			if !offer(d) {
				return errStop
			}
		}
		return nil
	}, "INDEXED BY delivery_block_open WHERE open > 0 AND subscription = +? ORDER BY id", subscription)
	for len(rows) > 0 && err == nil && offer(rows[0]) {
		rows = rows[1:]
	}
	return err
}

// busySubscriptions returns the subscriptions with unsettled deliveries.
func (t *tx) busySubscriptions() (ids []int64, err error) {
	if err := t.flush(); err != nil {
		return nil, err
	}
	for _, query := range []string{
		"SELECT DISTINCT subscription FROM delivery WHERE state < 2",
		"SELECT DISTINCT subscription FROM delivery_block WHERE open > 0",
	} {
		some, err := t.numbers(query)
		if err != nil {
			return nil, err
		}
		ids = append(ids, some...)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

func (t *tx) PendingLane(subscription int64, key string, after int64, limit int) ([]journal.Delivery, error) {
	ds, err := t.rows("state < 2 AND subscription = +? AND key = +? AND rank > ? ORDER BY rank LIMIT +?", subscription,
		key, after, limit)
	if err != nil {
		return nil, err
	}
	hash, n := laneHash(key), len(ds)
	err = t.eachBlock(func(b *block) error {
		waiting := b.waiting()
		for i := range waiting.all() {
			if b.loose.get(i) != (key == "") || b.lane[i] != hash && key != "" || journal.RankOf(b.seq(i)) <= after {
				continue
			}
			k, err := t.keyOf(b, i)
			if err != nil {
				return err
			}
			if k != key {
				continue
			}
			d := b.delivery(i)
			d.Key = key
			if ds = append(ds, d); len(ds)-n == limit {
				return errStop
			}
		}
		return nil
	}, "INDEXED BY delivery_block_open WHERE open > 0 AND subscription = +? AND id >= ? ORDER BY id",
		subscription, blockOf(max(after, 0)/journal.RankOf(1), 0))
	if err != nil {
		return nil, err
	}
	if n > 0 && n < len(ds) {
		slices.SortFunc(ds, func(a, b journal.Delivery) int { return cmp.Compare(a.Rank, b.Rank) })
	}
	return ds[:min(len(ds), limit)], nil
}

func (t *tx) AddDelivery(d journal.Delivery) error {
	if d.Rank == 0 {
		d.Rank = journal.RankOf(d.Seq)
	}
	if newest := &t.store.newest; !plain(d) || d.Key != "" && (d.Key != newest.key || d.Seq != newest.seq) {
		return t.write("INSERT INTO delivery (seq, subscription, key, state, rank, started_at, settled_at, reason) VALUES "+
			"(?, ?, ?, ?, ?, ?, ?, ?)",
			d.Seq, d.Subscription, d.Key, int(d.State), d.Rank, d.StartedAt, d.SettledAt, d.Reason)
	}
	b, err := t.block(blockOf(d.Seq, d.Subscription))
	if err != nil {
		return t.written(err)
	}
	if b.has.get(placeOf(d.Seq)) {
		return fmt.Errorf("subscription %d already has a delivery of event %d", d.Subscription, d.Seq)
	}
	if err := t.touch(b); err != nil {
		return err
	}
	b.put(d)
	return nil
}

func (t *tx) UpdateDelivery(d journal.Delivery) error {
	b, err := t.holder(d.Seq, d.Subscription)
	if err != nil {
		return t.written(err)
	}
	if b == nil {
		return t.write(`UPDATE delivery SET state = ?, attempts = ?, not_before = ?, started_at = ?, settled_at = ?,
			uncertain = ?, reason = ?,
			provider_id = ?, conversation = ?, rank = ?, resubmitted = ? WHERE seq = ? AND subscription = ?`,
			int(d.State), d.Attempts, d.NotBefore, d.StartedAt, d.SettledAt, d.Uncertain, d.Reason, d.ProviderID, d.Conversation,
			d.Rank, d.Resubmitted,
			d.Seq, d.Subscription)
	}
	if err := t.touch(b); err != nil {
		return err
	}
	if plain(d) {
		b.change(d)
		return nil
	}
	b.has.clear(placeOf(d.Seq))
	return t.write("INSERT INTO delivery ("+deliveryColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		d.Seq, d.Subscription, d.Key, int(d.State), d.Attempts, d.NotBefore, d.StartedAt, d.SettledAt, d.Uncertain, d.Reason,
		d.ProviderID, d.Conversation, d.Rank, d.Resubmitted)
}

func (t *tx) Acknowledge(seq, subscription, startedAt, settledAt int64) error {
	b, err := t.holder(seq, subscription)
	if err != nil {
		return t.written(err)
	}
	if b == nil {
		return t.write("UPDATE delivery SET state = 2, started_at = ?, settled_at = ? WHERE seq = ? AND subscription = ? "+
			"AND state < 2",
			startedAt, settledAt, seq, subscription)
	}
	i := placeOf(seq)
	if b.done.get(i) {
		return nil
	}
	if err := t.touch(b); err != nil {
		return err
	}
	b.done.set(i)
	b.started[i], b.settled[i] = startedAt, settledAt
	return nil
}

func (t *tx) DeleteSubscription(id int64) error {
	// Settled deliveries are deleted with their events: only the unsettled have an index.
	if err := t.write("DELETE FROM delivery WHERE state < 2 AND subscription = ?", id); err != nil {
		return err
	}
	unsettled := func(b *block) { b.has = b.has.without(new(b.waiting())) }
	err := t.removeFrom("INDEXED BY delivery_block_open WHERE open > 0 AND subscription = +?", unsettled, id)
	if err != nil {
		return err
	}
	return t.write("DELETE FROM subscription WHERE id = ?", id)
}

// removeFrom removes deliveries from the blocks that match a condition.
func (t *tx) removeFrom(where string, remove func(*block), args ...any) error {
	if err := t.flush(); err != nil {
		return err
	}
	ids, err := t.numbers("SELECT id FROM delivery_block "+where, args...)
	if err != nil {
		return err
	}
	for _, id := range ids {
		b, err := t.block(id)
		if err == nil {
			err = t.touch(b)
		}
		if err != nil {
			return t.written(err)
		}
		if remove(b); len(t.store.blocks.dirty) > keptBlocks {
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}
