package sqlite

import (
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

const blobColumns = "b.hash, b.size, b.owner, b.created_at"

func (t *tx) blobs(query string, args ...any) (blobs []journal.Blob, err error) {
	err = t.query(func(stmt *sqlite.Stmt) error {
		blobs = append(blobs, journal.Blob{
			Hash: stmt.ColumnText(0), Size: stmt.ColumnInt64(1), Owner: stmt.ColumnText(2), CreatedAt: stmt.ColumnInt64(3),
		})
		return nil
	}, query, args...)
	return blobs, err
}

func (t *tx) Blob(hash string) (*journal.Blob, error) {
	found, err := t.blobs("SELECT "+blobColumns+" FROM blob b WHERE hash = ?", hash)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

func (t *tx) Keeps(k journal.Keeper, hash string) (bool, error) {
	anyKey := k.Key == "" && k.Kind == journal.KeptByValue
	n, err := t.number("SELECT EXISTS (SELECT 1 FROM blob_keeper "+
		"WHERE hash = ? AND +kind = ? AND +id = ? AND +owner = ? AND (+key = ? OR ?))",
		hash, int(k.Kind), k.ID, k.Owner, k.Key, anyKey)
	return n > 0, err
}

func (t *tx) KeptBlobs(k journal.Keeper, prefix string, limit int) ([]journal.Blob, error) {
	return t.blobs("SELECT "+blobColumns+" FROM blob_keeper r JOIN blob b ON b.hash = r.hash "+
		"WHERE r.kind = ? AND r.id = ? AND r.owner = ? AND r.key = ? AND r.hash >= ? AND r.hash < ? "+
		"ORDER BY r.hash LIMIT +?",
		int(k.Kind), k.ID, k.Owner, k.Key, prefix, prefix+"\xff", limit)
}

func (t *tx) BlobBytes(owner string) (int64, error) {
	return t.number("SELECT coalesce(sum(bytes), 0) FROM blob_bytes WHERE owner = ?1 OR ?1 = ''", owner)
}

func (t *tx) HoldBlob(b journal.Blob, owner string, until int64) error {
	err := t.write("INSERT INTO blob (hash, size, owner, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
		b.Hash, b.Size, b.Owner, b.CreatedAt)
	if err == nil && t.conn.Changes() > 0 {
		err = t.write("INSERT INTO blob_bytes (owner, bytes) VALUES (?, ?) "+
			"ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes", b.Owner, b.Size)
	}
	if err != nil {
		return err
	}
	return t.write("INSERT INTO blob_keeper (kind, id, owner, key, hash, until) VALUES (?, 0, ?, '', ?, ?) "+
		"ON CONFLICT DO UPDATE SET until = excluded.until", int(journal.KeptByHold), owner, b.Hash, until)
}

func (t *tx) KeepBlobs(k journal.Keeper, hashes []string) error {
	for _, hash := range hashes {
		known, err := t.Blob(hash)
		if err == nil && known == nil {
			err = fmt.Errorf("%w: %s", journal.ErrNoBlob, hash)
		}
		if err != nil {
			return err
		}
		if k.Kind == journal.KeptByValue {
			t.store.valuesKeep = true
		}
		err = t.write("INSERT INTO blob_keeper (kind, id, owner, key, hash) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
			int(k.Kind), k.ID, k.Owner, k.Key, hash)
		if err != nil {
			return err
		}
	}
	return nil
}

// valueKeepsNothing ends the keeping by a value that is replaced or deleted. It costs
// nothing until a value keeps a blob.
func (t *tx) valueKeepsNothing(owner, key string) error {
	if t.store == nil || !t.store.valuesKeep {
		return nil
	}
	return t.write("DELETE FROM blob_keeper WHERE kind = ? AND id = 0 AND owner = ? AND key = ?",
		int(journal.KeptByValue), owner, key)
}

// eventsKeepNothing ends the keeping by events that are deleted.
func (t *tx) eventsKeepNothing(from, to int64) error {
	return t.write("DELETE FROM blob_keeper WHERE kind = ? AND id >= ? AND id <= ?", int(journal.KeptByEvent), from, to)
}

func (t *tx) SweepBlobs(now int64, after string, limit int) (gone []string, last string, err error) {
	var unkept []journal.Blob
	n := 0
	err = t.query(func(stmt *sqlite.Stmt) error {
		n++
		last = stmt.ColumnText(0)
		if !stmt.ColumnBool(3) {
			unkept = append(unkept, journal.Blob{Hash: last, Size: stmt.ColumnInt64(1), Owner: stmt.ColumnText(2)})
		}
		return nil
	}, "SELECT hash, size, owner, EXISTS (SELECT 1 FROM blob_keeper r WHERE r.hash = b.hash "+
		"AND (+r.kind <> ? OR r.until >= ?)) FROM blob b WHERE hash > ? ORDER BY hash LIMIT +?",
		int(journal.KeptByHold), now, after, limit)
	if err == nil { // only of these files: a commit stays small
		err = t.write("DELETE FROM blob_keeper WHERE hash > ? AND hash <= ? AND +kind = ? AND until < ?", after, last,
			int(journal.KeptByHold), now)
	}
	if n < limit {
		last = ""
	}
	for _, b := range unkept {
		if err == nil {
			err = t.write("DELETE FROM blob WHERE hash = ?", b.Hash)
		}
		if err == nil {
			err = t.write("UPDATE blob_bytes SET bytes = bytes - ? WHERE owner = ?", b.Size, b.Owner)
		}
		gone = append(gone, b.Hash)
	}
	return gone, last, err
}
