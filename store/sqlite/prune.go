package sqlite

import (
	"iter"

	"zombiezen.com/go/sqlite"
)

// walkFactor bounds how many events one call of Prune looks at, as a multiple of
// those that it may remove. What stays among the old (it waits, or has died not
// long ago) would otherwise be looked at each time, by the goroutine that
// everybody waits for.
const walkFactor = 3

// walkEnd is the last event that the walk of this call looks at.
func (t *tx) walkEnd(limit int) (int64, error) {
	return t.number("SELECT coalesce(max(seq), 0) FROM (SELECT seq FROM event WHERE seq > ? ORDER BY seq LIMIT +?)", t.store.pruned, walkFactor*limit)
}

// further stores where the walk ended and reports whether it continues: the next
// call starts after it. After the end, the next call starts at the front again. If
// the update fails, the events that the walk has passed stay until then.
func (t *tx) further(doomed []int64, before, end int64, limit int) (more bool, err error) {
	if len(doomed) == limit {
		end = doomed[limit-1]
	}
	t.store.pruned = 0
	if end == 0 {
		return false, nil
	}
	err = t.query(func(stmt *sqlite.Stmt) error {
		more = stmt.ColumnInt64(0) < before
		return nil
	}, "SELECT created_at FROM event WHERE seq > ? AND seq < (SELECT max(seq) FROM event) ORDER BY seq LIMIT 1", end)
	if more {
		t.store.pruned = end
	}
	return more, err
}

// runs are the stretches of ascending numbers without a gap: first and last.
func runs(seqs []int64) iter.Seq2[int64, int64] {
	return func(yield func(from, to int64) bool) {
		for len(seqs) > 0 {
			n := 1
			for n < len(seqs) && seqs[n] == seqs[n-1]+1 {
				n++
			}
			if !yield(seqs[0], seqs[n-1]) {
				return
			}
			seqs = seqs[n:]
		}
	}
}

// waitingIn are the events of a block that any subscription waits for.
func (t *tx) waitingIn(number int64) (waits bitmap, err error) {
	err = t.eachBlock(func(b *block) error {
		for i, word := range b.waiting() {
			waits[i] |= word
		}
		return nil
	}, "WHERE id >= ? AND id <= ? AND open > 0", number<<subscriptionBits, number<<subscriptionBits|maxSubscription)
	return waits, err
}

// thinOut takes the deliveries of events, in order, out of their blocks.
func (t *tx) thinOut(seqs []int64) error {
	for len(seqs) > 0 {
		number := numberOf(seqs[0])
		var gone bitmap
		for len(seqs) > 0 && numberOf(seqs[0]) == number {
			gone.set(placeOf(seqs[0]))
			seqs = seqs[1:]
		}
		err := t.thin("WHERE id >= ? AND id <= ?", func(b *block) { b.has = b.has.without(&gone) },
			number<<subscriptionBits, number<<subscriptionBits|maxSubscription)
		if err != nil {
			return err
		}
	}
	return nil
}
