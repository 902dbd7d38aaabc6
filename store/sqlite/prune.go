package sqlite

import (
	"iter"

	"zombiezen.com/go/sqlite"
)

// walkFactor bounds the number of events that one call of Prune reads, as a multiple
// of those that it may remove. Otherwise each call would read all old events that stay
// (unsettled, or dead for a short time), while all commits wait.
const walkFactor = 3

// walkEnd returns the last event that the walk of this call reads.
func (t *tx) walkEnd(limit int) (int64, error) {
	return t.number("SELECT coalesce(max(seq), 0) FROM (SELECT seq FROM event WHERE seq > ? ORDER BY seq LIMIT +?)",
		t.store.pruned, walkFactor*limit)
}

// endWalk stores the end of the walk and reports whether the next call continues
// there; after the last event the next call starts at the oldest. If the update fails,
// the events before the stored end stay until then.
func (t *tx) endWalk(removed []int64, before, end int64, limit int) (more bool, err error) {
	if len(removed) == limit {
		end = removed[limit-1]
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

// runs yields the ranges of consecutive numbers, first and last.
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

// waitingIn returns the events of a block that are unsettled for any subscription.
func (t *tx) waitingIn(number int64) (waits bitmap, err error) {
	err = t.eachBlock(func(b *block) error {
		for i, word := range b.waiting() {
			waits[i] |= word
		}
		return nil
	}, "WHERE id >= ? AND id <= ? AND open > 0", number<<subscriptionBits, number<<subscriptionBits|maxSubscription)
	return waits, err
}

// removeFromBlocks removes the deliveries of events, in ascending order, from blocks.
func (t *tx) removeFromBlocks(seqs []int64) error {
	for len(seqs) > 0 {
		number := numberOf(seqs[0])
		var gone bitmap
		for len(seqs) > 0 && numberOf(seqs[0]) == number {
			gone.set(placeOf(seqs[0]))
			seqs = seqs[1:]
		}
		err := t.removeFrom("WHERE id >= ? AND id <= ?", func(b *block) { b.has = b.has.without(&gone) },
			number<<subscriptionBits, number<<subscriptionBits|maxSubscription)
		if err != nil {
			return err
		}
	}
	return nil
}
