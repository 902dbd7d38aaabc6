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
	from := "key >= ?"
	if after == "" {
		after = prefix
	} else {
		from = "key > ?"
	}
	// Keys are compared bytewise, and no text contains the byte 0xff.
	err = t.query(func(stmt *sqlite.Stmt) error {
		values = append(values, journal.KV{Key: stmt.ColumnText(0), Value: column(stmt, 1), Version: stmt.ColumnInt64(2)})
		return nil
	}, "SELECT key, value, version FROM kv WHERE owner = ? AND "+from+" AND key < ? ORDER BY key LIMIT ?",
		owner, after, prefix+"\xff", limitOr(limit, 1000))
	return values, err
}

func (t *tx) KVPut(owner, key string, value []byte) (version int64, err error) {
	// Versions never start again, so that a deleted and recreated key is not
	// taken for the one that was read.
	err = t.writeReturning(func(stmt *sqlite.Stmt) error {
		version = stmt.ColumnInt64(0)
		return nil
	}, `INSERT INTO kv (owner, key, value, version) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (owner, key) DO UPDATE SET value = excluded.value, version = kv.version + 1 RETURNING version`,
		owner, key, value, t.store.seq+1)
	return version, err
}

func (t *tx) KVDelete(owner, key string) error {
	return t.write("DELETE FROM kv WHERE owner = ? AND key = ?", owner, key)
}
