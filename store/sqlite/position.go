package sqlite

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
)

// ErrCopy means that a store file is a copy of a commit log's state, which nothing but the
// log may change.
var ErrCopy = errors.New("the store belongs to a cluster")

// logTables are what a copy has in addition. log_position is the newest entry that the
// file includes. A patchset does not carry sqlite_sequence, so log_counter does.
const logTables = `
CREATE TABLE log_position (id INTEGER PRIMARY KEY, head INTEGER NOT NULL, hash BLOB NOT NULL, time INTEGER NOT NULL);
INSERT INTO log_position VALUES (1, 0, zeroblob(32), 0);
CREATE TABLE log_counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;`

// dropLogTables makes a copy a store of its own.
const dropLogTables = "DROP TABLE IF EXISTS log_position; DROP TABLE IF EXISTS log_counter;"

// place is where a copy is in the log.
type place struct {
	commitlog.Position
	time int64 // of the entry
}

func isCopy(conn *sqlite.Conn) (bool, error) {
	n, err := number(conn, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'log_position'")
	return n > 0, err
}

func refuseCopy(conn *sqlite.Conn) error {
	if copied, err := isCopy(conn); err != nil || !copied {
		return err
	}
	return fmt.Errorf("%w, which has its state now: start with --cluster, or take it out of the cluster first with "+
		"`switchboard cluster leave`: %w", ErrCopy, journal.ErrRefused)
}

func readPlace(conn *sqlite.Conn) (p place, err error) {
	t := &tx{conn: conn}
	found := false
	err = t.query(func(stmt *sqlite.Stmt) error {
		found = stmt.ColumnLen(1) == len(p.Hash)
		p.Head, p.time = stmt.ColumnInt64(0), stmt.ColumnInt64(2)
		stmt.ColumnBytes(1, p.Hash[:])
		return nil
	}, "SELECT head, hash, time FROM log_position WHERE id = 1")
	if err == nil && !found {
		err = fmt.Errorf("%w: its position in the log is missing", journal.ErrDamaged)
	}
	return p, err
}

// setPlace is part of the transaction of the entry.
func setPlace(conn *sqlite.Conn, e commitlog.Entry) error {
	return (&tx{conn: conn}).query(nil, "UPDATE log_position SET head = ?, hash = ?, time = ? WHERE id = 1",
		e.Position, e.Hash[:], e.Time)
}

// storeCounters makes the counters of ids a part of the transaction's changes. An id that
// the same transaction gave and deleted would be given again elsewhere.
func storeCounters(t *tx) error {
	return t.query(nil, "INSERT INTO log_counter (name, value) SELECT name, seq FROM sqlite_sequence WHERE true "+
		"ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value <> excluded.value")
}

// loadCounters does the opposite, where changes were applied.
func loadCounters(conn *sqlite.Conn) error {
	if version, err := userVersion(conn); err != nil || version == 0 { // there is no sqlite_sequence yet
		return err
	}
	for _, query := range []string{
		"UPDATE sqlite_sequence SET seq = c.value FROM log_counter c WHERE c.name = sqlite_sequence.name AND c.value > seq",
		"INSERT INTO sqlite_sequence (name, seq) SELECT name, value FROM log_counter " +
			"WHERE name NOT IN (SELECT name FROM sqlite_sequence)",
	} {
		if err := (&tx{conn: conn}).query(nil, query); err != nil {
			return err
		}
	}
	return nil
}

// Detach makes a closed copy a store of its own, which no log changes any more.
func Detach(path string) error {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err == nil {
		err = errors.Join(sqlitex.ExecScript(conn, dropLogTables), conn.Close())
	}
	if err != nil {
		return fmt.Errorf("take %s out of the cluster: %w", path, explain(err))
	}
	return nil
}

// PositionOf returns the position of a closed copy.
func PositionOf(path string) (at commitlog.Position, err error) {
	err = inspect(path, func(conn *sqlite.Conn) error {
		p, err := readPlace(conn)
		at = p.Position
		return err
	})
	return at, err
}
