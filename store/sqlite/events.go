package sqlite

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

const eventColumns = "seq, topic, key, source, payload, correlation, causation, hop, dedupe, created_at"

func scanEvent(stmt *sqlite.Stmt) *busv1.Event {
	seq := stmt.ColumnInt64(0)
	return &busv1.Event{
		Seq: seq, Id: journal.EventID(seq), Topic: stmt.ColumnText(1), Key: stmt.ColumnText(2), Source: stmt.ColumnText(3),
		Payload: column(stmt, 4), CorrelationId: stmt.ColumnText(5), CausationId: stmt.ColumnText(6),
		Hop: int32(stmt.ColumnInt64(7)), DedupeKey: stmt.ColumnText(8), CreatedAtUs: stmt.ColumnInt64(9),
	}
}

func (t *tx) Event(seq int64) (e *busv1.Event, err error) {
	err = t.query(func(stmt *sqlite.Stmt) error {
		e = scanEvent(stmt)
		return nil
	}, "SELECT "+eventColumns+" FROM event WHERE seq = ?", seq)
	return e, err
}

func (t *tx) EventByDedupe(source, key string) (seq int64, found bool, err error) {
	err = t.query(func(stmt *sqlite.Stmt) error {
		seq, found = stmt.ColumnInt64(0), true
		return nil
	}, "SELECT seq FROM event WHERE source = ? AND dedupe = ?", source, key)
	return seq, found, err
}

func (t *tx) Events(f journal.EventFilter) (events []*busv1.Event, err error) {
	var where []string
	var args []any
	add := func(cond string, arg any) {
		where, args = append(where, cond), append(args, arg)
	}
	if f.After > 0 {
		add("seq > ?", f.After)
	}
	if f.Before > 0 {
		add("seq < ?", f.Before)
	}
	if f.Topic != "" {
		if prefix, wild := strings.CutSuffix(f.Topic, "*"); wild {
			add("substr(topic, 1, "+strconv.Itoa(len(prefix))+") = +?", prefix)
		} else {
			add("topic = +?", f.Topic)
		}
	}
	if f.Correlation != "" {
		add("correlation = +?", f.Correlation)
	}
	query := "SELECT " + eventColumns + " FROM event"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	if query += " ORDER BY seq DESC LIMIT +?"; f.Ascending {
		query = strings.Replace(query, "seq DESC", "seq", 1)
	}
	args = append(args, limitOr(f.Limit, 100))
	err = t.query(func(stmt *sqlite.Stmt) error {
		events = append(events, scanEvent(stmt))
		return nil
	}, query, args...)
	return events, err
}

func (t *tx) LastSeq() (int64, error) {
	return t.number("SELECT coalesce(max(seq), 0) FROM event")
}

func (t *tx) AppendEvent(e *busv1.Event) error {
	seq := t.store.seq + 1
	id := journal.EventID(seq)
	correlation := cmp.Or(e.GetCorrelationId(), id)
	err := t.writeHot(hotAppendEvent, func(stmt *sqlite.Stmt) {
		stmt.BindInt64(1, seq)
		stmt.BindText(2, e.GetTopic())
		stmt.BindText(3, e.GetKey())
		stmt.BindText(4, e.GetSource())
		bind(stmt, 5, e.GetPayload())
		stmt.BindText(6, correlation)
		stmt.BindText(7, e.GetCausationId())
		stmt.BindInt64(8, int64(e.GetHop()))
		if e.GetDedupeKey() == "" {
			stmt.BindNull(9)
		} else {
			stmt.BindText(9, e.GetDedupeKey())
		}
		stmt.BindInt64(10, e.GetCreatedAtUs())
	})
	if code := sqlite.ErrCode(err); !t.half && (code == sqlite.ResultConstraintPrimaryKey ||
		code == sqlite.ResultConstraintRowID) {
		// Another process has assigned the sequence number.
		err = fmt.Errorf("%w: event %d exists: stop one of the two: %w", journal.ErrFenced, seq, err)
		t.failed = err
	}
	if err != nil {
		return err
	}
	t.store.seq = seq
	t.store.newest.seq, t.store.newest.key = seq, e.GetKey()
	e.Seq, e.Id, e.CorrelationId = seq, id, correlation
	return nil
}

func (t *tx) Subscriptions() (subs []journal.Subscription, err error) {
	err = t.query(func(stmt *sqlite.Stmt) error {
		subs = append(subs, journal.Subscription{
			ID: stmt.ColumnInt64(0), Extension: stmt.ColumnText(1), Pattern: stmt.ColumnText(2), ParkedAt: stmt.ColumnInt64(3),
		})
		return nil
	}, "SELECT id, extension, pattern, parked_at FROM subscription ORDER BY id")
	return subs, err
}

func (t *tx) PutSubscription(s *journal.Subscription) (err error) {
	if s.ID != 0 {
		return t.write("UPDATE subscription SET parked_at = ? WHERE id = ?", s.ParkedAt, s.ID)
	}
	s.ID, err = t.insert("INSERT INTO subscription (extension, pattern, parked_at) VALUES (?, ?, ?)", s.Extension,
		s.Pattern, s.ParkedAt)
	return err
}

func (t *tx) Prune(before, deadBefore int64, limit int) (more bool, err error) {
	end, err := t.walkEnd(limit)
	if err != nil {
		return false, err
	}
	removed, err := t.prunable(before, deadBefore, end, limit)
	if err != nil {
		return false, err
	}
	for from, to := range runs(removed) {
		if err := t.write("DELETE FROM delivery WHERE seq >= ? AND seq <= ?", from, to); err != nil {
			return false, err
		}
		if err := t.write("DELETE FROM event WHERE seq >= ? AND seq <= ?", from, to); err != nil {
			return false, err
		}
		if err := t.eventsKeepNothing(from, to); err != nil {
			return false, err
		}
	}
	if err := t.removeFromBlocks(removed); err != nil {
		return false, err
	}
	err = t.write(`DELETE FROM commit_receipt WHERE (owner, id) IN
		(SELECT owner, id FROM commit_receipt WHERE created_at < ? LIMIT +?)`, before, limit)
	more = t.conn.Changes() == limit
	if err != nil {
		return false, err
	}
	unfinished, err := t.endWalk(removed, before, end, limit)
	return more || unfinished, err
}

// prunable walks from the end of the previous walk to the first event that is too
// young, so that its work does not depend on the number of younger events.
func (t *tx) prunable(before, deadBefore, end int64, limit int) (seqs []int64, err error) {
	last, err := t.LastSeq() // is kept: the next seq follows it
	if err != nil {
		return nil, err
	}
	var waits bitmap // unsettled in the current block, for any subscription
	number := int64(-1)
	err = t.query(func(stmt *sqlite.Stmt) error {
		seq := stmt.ColumnInt64(0)
		if len(seqs) == limit || stmt.ColumnInt64(1) >= before {
			return errStop
		}
		if n := numberOf(seq); n != number {
			number = n
			if waits, err = t.waitingIn(n); err != nil {
				return err
			}
		}
		if !stmt.ColumnBool(2) && !waits.get(placeOf(seq)) {
			seqs = append(seqs, seq)
		}
		return nil
	}, `SELECT e.seq, e.created_at, EXISTS (SELECT 1 FROM delivery d WHERE d.seq = e.seq
		AND (d.state < 2 OR (d.state = 3 AND d.settled_at >= ?)))
		FROM event e WHERE e.seq > ? AND e.seq < ? ORDER BY e.seq`, deadBefore, t.store.pruned, min(last, end+1))
	return seqs, err
}

func (t *tx) CommitReceipt(owner, id string) (receipt []byte, found bool, err error) {
	err = t.query(func(stmt *sqlite.Stmt) error {
		receipt, found = column(stmt, 0), true
		return nil
	}, "SELECT receipt FROM commit_receipt WHERE owner = ? AND id = ?", owner, id)
	return receipt, found, err
}

func (t *tx) PutCommitReceipt(owner, id string, receipt []byte) error {
	return t.write("INSERT INTO commit_receipt (owner, id, receipt, created_at) VALUES (?, ?, ?, ?)", owner, id, receipt,
		t.store.now().UnixMicro())
}
