package sqlite

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// MarkUncertain prepares a copy to replace a store that may have newer commits.
// Pending work of the copy may have been done since: it marks waiting sends as
// possibly sent, and open calls of extensions' tools and of sending tools as possibly
// made. journal.KeyRestored keeps the last sequence number of the copy. The copy keeps
// its version.
func MarkUncertain(path string) error {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return fmt.Errorf("prepare the copy %s: %w", path, explain(err))
	}
	if err = sqlitex.ExecuteTransient(conn, "PRAGMA journal_mode=WAL", nil); err == nil {
		err = markInTransaction(conn)
	}
	if err = errors.Join(err, conn.Close()); err != nil {
		return fmt.Errorf("prepare the copy %s: %w", path, explain(err))
	}
	return nil
}

func markInTransaction(conn *sqlite.Conn) error {
	t := &tx{conn: conn}
	if err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := sqlitex.ExecScript(conn, dropLogTables) // a backup of a cluster's store is one of its own
	if err == nil {
		err = mark(conn)
	}
	if err != nil {
		return errors.Join(err, t.exec("ROLLBACK"))
	}
	return t.exec("COMMIT")
}

// mark does what MarkUncertain promises, in a transaction.
func mark(conn *sqlite.Conn) error {
	for _, step := range []struct {
		query string
		args  []any
	}{
		{`UPDATE delivery SET uncertain = 1 WHERE state < ?
			AND subscription IN (SELECT id FROM subscription WHERE pattern LIKE ? || '%')`,
			[]any{int64(journal.Done), contract.TopicChannelSend}},
		{"UPDATE call SET state = ? WHERE state = ? AND (name NOT LIKE 'core/%' OR name LIKE 'core/send_to_%')",
			[]any{int64(journal.CallRunning), int64(journal.CallOpen)}},
		{`INSERT INTO kv (owner, key, value, version)
					SELECT ?, ?, CAST(coalesce(max(seq), 0) AS BLOB), (SELECT version + 1 FROM kv_floor) FROM event WHERE true
					ON CONFLICT (owner, key) DO UPDATE SET value = excluded.value, version = kv.version + 1`,
			[]any{contract.KernelSource, journal.KeyRestored}},
	} {
		if err := sqlitex.ExecuteTransient(conn, step.query, &sqlitex.ExecOptions{Args: step.args}); err != nil {
			return err
		}
	}
	return markBlocks(conn)
}

// markBlocks moves waiting sends from blocks to rows that mark them uncertain.
func markBlocks(conn *sqlite.Conn) error {
	if version, err := knownVersion(conn); err != nil || version < versionOfBlocks {
		return err
	}
	t := &tx{conn: conn, store: &Store{write: conn}}
	known, err := t.Subscriptions()
	for _, s := range known {
		if err == nil && strings.HasPrefix(s.Pattern, contract.TopicChannelSend) {
			err = t.markPending(s.ID)
		}
	}
	if err != nil {
		return err
	}
	return t.flush()
}

func (t *tx) markPending(subscription int64) error {
	waiting, err := t.Deliveries(journal.DeliveryFilter{Subscription: subscription,
		States: []journal.DeliveryState{journal.Pending}, Limit: math.MaxInt32})
	if err != nil {
		return err
	}
	for _, d := range waiting {
		d.Uncertain = true
		if err := t.UpdateDelivery(d); err != nil {
			return err
		}
	}
	return nil
}
