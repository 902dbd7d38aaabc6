package sqlite

import (
	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

func (t *tx) KVGet(owner, key string) (v journal.KV, err error) {
	v.Key = key
	err = t.query(func(stmt *sqlite.Stmt) error {
		v.Value, v.Version = column(stmt, 0), stmt.ColumnInt64(1)
		return nil
	}, "SELECT value, version FROM kv WHERE owner = ? AND key = ?", owner, key)
	return v, err
}

func (t *tx) KVScan(owner, prefix, after string, limit int) (values []journal.KV, err error) {
	from := "key > ?"
	if after < prefix || after == "" {
		from, after = "key >= ?", prefix
	}
	// Keys are compared bytewise, and no text contains the byte 0xff.
	err = t.query(func(stmt *sqlite.Stmt) error {
		values = append(values, journal.KV{Key: stmt.ColumnText(0), Value: column(stmt, 1), Version: stmt.ColumnInt64(2)})
		return nil
	}, "SELECT key, value, version FROM kv WHERE owner = +? AND "+from+" AND key < ? ORDER BY key LIMIT +?",
		owner, after, prefix+"\xff", limitOr(limit, 1000))
	return values, err
}

func (t *tx) KVPut(owner, key string, value []byte) (version int64, err error) {
	err = t.writeReturning(func(stmt *sqlite.Stmt) error {
		version = stmt.ColumnInt64(0)
		return nil
	}, `INSERT INTO kv (owner, key, value, version) VALUES (?1, ?2, ?3, (SELECT version + 1 FROM kv_floor))
		ON CONFLICT (owner, key) DO UPDATE SET value = excluded.value, version = kv.version + 1 RETURNING version`,
		owner, key, value)
	if err != nil {
		return 0, err
	}
	return version, t.valueKeepsNothing(owner, key)
}

func (t *tx) KVDelete(owner, key string) error {
	err := t.write(`UPDATE kv_floor SET
		version = max(version, coalesce((SELECT version FROM kv WHERE owner = ? AND key = ?), 0))`, owner, key)
	if err != nil {
		return err
	}
	if err := t.valueKeepsNothing(owner, key); err != nil {
		return err
	}
	return t.write("DELETE FROM kv WHERE owner = ? AND key = ?", owner, key)
}
