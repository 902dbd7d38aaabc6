package sqlite

import (
	"slices"
	"strconv"
	"strings"
	"time"

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

func (t *tx) LastSeq() (seq int64, err error) {
	err = t.query(func(stmt *sqlite.Stmt) error {
		seq = stmt.ColumnInt64(0)
		return nil
	}, "SELECT coalesce(max(seq), 0) FROM event")
	return seq, err
}

func (t *tx) AppendEvent(e *busv1.Event) error {
	seq := t.store.seq + 1
	var dedupe any
	if e.GetDedupeKey() != "" {
		dedupe = e.GetDedupeKey()
	}
	correlation := e.GetCorrelationId()
	if correlation == "" {
		correlation = journal.EventID(seq)
	}
	err := t.write("INSERT INTO event ("+eventColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		seq, e.GetTopic(), e.GetKey(), e.GetSource(), e.GetPayload(), correlation, e.GetCausationId(), e.GetHop(), dedupe, e.GetCreatedAtUs())
	if err != nil {
		return err
	}
	t.store.seq = seq
	e.Seq, e.Id, e.CorrelationId = seq, journal.EventID(seq), correlation
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

func (t *tx) PutSubscription(s *journal.Subscription) error {
	if s.ID != 0 {
		return t.write("UPDATE subscription SET parked_at = ? WHERE id = ?", s.ParkedAt, s.ID)
	}
	err := t.write("INSERT INTO subscription (extension, pattern, parked_at) VALUES (?, ?, ?)", s.Extension, s.Pattern, s.ParkedAt)
	if err == nil {
		s.ID = t.conn.LastInsertRowID()
	}
	return err
}

func (t *tx) DeleteSubscription(id int64) error {
	// Settled ones go with their events: only the unsettled have an index.
	if err := t.write("DELETE FROM delivery WHERE state < 2 AND subscription = ?", id); err != nil {
		return err
	}
	return t.write("DELETE FROM subscription WHERE id = ?", id)
}

const deliveryColumns = "seq, subscription, key, state, attempts, not_before, started_at, settled_at, uncertain, reason, provider_id, conversation, rank, resubmitted"

func scanDelivery(stmt *sqlite.Stmt) journal.Delivery {
	return journal.Delivery{
		Seq: stmt.ColumnInt64(0), Subscription: stmt.ColumnInt64(1), Key: stmt.ColumnText(2),
		State: journal.DeliveryState(stmt.ColumnInt64(3)), Attempts: stmt.ColumnInt(4), NotBefore: stmt.ColumnInt64(5),
		StartedAt: stmt.ColumnInt64(6), SettledAt: stmt.ColumnInt64(7), Uncertain: stmt.ColumnBool(8), Reason: stmt.ColumnText(9),
		ProviderID: stmt.ColumnText(10), Conversation: stmt.ColumnInt64(11), Rank: stmt.ColumnInt64(12),
		Resubmitted: stmt.ColumnInt64(13),
	}
}

func (t *tx) deliveries(query string, args ...any) (ds []journal.Delivery, err error) {
	err = t.query(func(stmt *sqlite.Stmt) error {
		ds = append(ds, scanDelivery(stmt))
		return nil
	}, query, args...)
	return ds, err
}

func (t *tx) Delivery(seq, subscription int64) (*journal.Delivery, error) {
	ds, err := t.deliveries("SELECT "+deliveryColumns+" FROM delivery WHERE seq = ? AND subscription = ?", seq, subscription)
	if err != nil || len(ds) == 0 {
		return nil, err
	}
	return &ds[0], nil
}

func (t *tx) Deliveries(f journal.DeliveryFilter) ([]journal.Delivery, error) {
	where := []string{"1"}
	var args []any
	if f.Seq > 0 {
		where, args = append(where, "seq = +?"), append(args, f.Seq)
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
	if len(f.States) > 0 {
		states := make([]string, len(f.States))
		for i, s := range f.States {
			states[i] = "state = " + strconv.Itoa(int(s)) // literal: lets the partial indexes be used
		}
		where = append(where, "("+strings.Join(states, " OR ")+")")
		if slices.Max(f.States) < journal.Done {
			where = append(where, "state < 2") // as in the index
		}
	}
	args = append(args, limitOr(f.Limit, 100))
	return t.deliveries("SELECT "+deliveryColumns+" FROM delivery WHERE "+strings.Join(where, " AND ")+" ORDER BY seq DESC LIMIT +?", args...)
}

func (t *tx) Pending(each func(journal.Delivery) bool) error {
	return t.query(func(stmt *sqlite.Stmt) error {
		if !each(scanDelivery(stmt)) {
			return errStop
		}
		return nil
	}, "SELECT "+deliveryColumns+" FROM delivery WHERE state < 2 ORDER BY subscription, key, rank")
}

func (t *tx) PendingLane(subscription int64, key string, after int64, limit int) ([]journal.Delivery, error) {
	return t.deliveries("SELECT "+deliveryColumns+" FROM delivery WHERE state < 2 AND subscription = +? AND key = +? AND rank > ? ORDER BY rank LIMIT +?",
		subscription, key, after, limit)
}

func (t *tx) AddDelivery(d journal.Delivery) error {
	if d.Rank == 0 {
		d.Rank = journal.RankOf(d.Seq)
	}
	return t.write("INSERT INTO delivery (seq, subscription, key, state, rank, settled_at, reason) VALUES (?, ?, ?, ?, ?, ?, ?)",
		d.Seq, d.Subscription, d.Key, int(d.State), d.Rank, d.SettledAt, d.Reason)
}

func (t *tx) UpdateDelivery(d journal.Delivery) error {
	return t.write(`UPDATE delivery SET state = ?, attempts = ?, not_before = ?, started_at = ?, settled_at = ?, uncertain = ?, reason = ?,
		provider_id = ?, conversation = ?, rank = ?, resubmitted = ? WHERE seq = ? AND subscription = ?`,
		int(d.State), d.Attempts, d.NotBefore, d.StartedAt, d.SettledAt, d.Uncertain, d.Reason, d.ProviderID, d.Conversation, d.Rank, d.Resubmitted,
		d.Seq, d.Subscription)
}

func (t *tx) Prune(before, deadBefore int64, limit int) (more bool, err error) {
	doomed, err := t.prunable(before, deadBefore, limit)
	if err != nil {
		return false, err
	}
	for _, seq := range doomed {
		if err := t.write("DELETE FROM delivery WHERE seq = ?", seq); err != nil {
			return false, err
		}
		if err := t.write("DELETE FROM event WHERE seq = ?", seq); err != nil {
			return false, err
		}
	}
	err = t.write(`DELETE FROM commit_receipt WHERE (owner, id) IN
		(SELECT owner, id FROM commit_receipt WHERE created_at < ? LIMIT +?)`, before, limit)
	return len(doomed) == limit || t.conn.Changes() == limit, err
}

// prunable walks from the oldest event to the first that is too young, so that
// its work does not depend on how much is kept behind that one.
func (t *tx) prunable(before, deadBefore int64, limit int) (seqs []int64, err error) {
	last, err := t.LastSeq() // is kept: seqs go on behind it
	if err != nil {
		return nil, err
	}
	err = t.query(func(stmt *sqlite.Stmt) error {
		if len(seqs) == limit || stmt.ColumnInt64(1) >= before {
			return errStop
		}
		if !stmt.ColumnBool(2) {
			seqs = append(seqs, stmt.ColumnInt64(0))
		}
		return nil
	}, `SELECT e.seq, e.created_at, EXISTS (SELECT 1 FROM delivery d WHERE d.seq = e.seq
		AND (d.state < 2 OR (d.state = 3 AND d.settled_at >= ?)))
		FROM event e WHERE e.seq < ? ORDER BY e.seq`, deadBefore, last)
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
	return t.write("INSERT INTO commit_receipt (owner, id, receipt, created_at) VALUES (?, ?, ?, ?)", owner, id, receipt, time.Now().UnixMicro())
}
