package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
)

const (
	batchEntries = 256
	batchBytes   = 8 << 20
)

// batch applies entries in transactions of several.
type batch struct {
	f       *Follower
	open    bool
	entries int64
	bytes   int
	at      place
	schema  int
}

// add applies the next entry.
func (b *batch) add(e commitlog.Entry) error {
	f := b.f
	if !b.open {
		if err := (&tx{conn: f.conn}).exec("BEGIN IMMEDIATE"); err != nil {
			return err
		}
		b.open, b.entries, b.bytes, b.at, b.schema = true, 0, 0, f.at, f.schema
	}
	if err := commitlog.Check(b.at.Position, e); err != nil {
		if e.Position == b.at.Head+1 && b.entries == 0 && b.at.Head > 0 &&
			commitlog.Check(commitlog.Position{Head: b.at.Head, Hash: e.Previous}, e) == nil {
			return fmt.Errorf("%w: entry %d is whole, and does not follow %x", errBranch, e.Position, b.at.Hash[:4])
		}
		return err
	}
	if err := b.apply(e); err != nil {
		return err
	}
	if err := setPlace(f.conn, e); err != nil {
		return err
	}
	b.at = place{e.At(), e.Time}
	b.entries++
	b.bytes += len(e.Body)
	if b.entries == batchEntries || b.bytes >= batchBytes || e.Position%f.every == 0 {
		return b.commit()
	}
	return nil
}

func (b *batch) apply(e commitlog.Entry) error {
	f := b.f
	if e.Schema > len(migrations) {
		return fmt.Errorf("%w: entry %d has version %d, and this program supports %d; install the newer program",
			journal.ErrNewer, e.Position, e.Schema, len(migrations))
	}
	switch e.Kind {
	case commitlog.Changes, commitlog.Doubts:
		if e.Schema != b.schema {
			return fmt.Errorf("%w: entry %d has schema %d after %d", commitlog.ErrBroken, e.Position, e.Schema, b.schema)
		}
		err := f.conn.ApplyChangeset(bytes.NewReader(e.Body), nil,
			func(sqlite.ConflictType, *sqlite.ChangesetIterator) sqlite.ConflictAction {
				return sqlite.ChangesetAbort
			})
		if sqlite.ErrCode(err) == sqlite.ResultAbort {
			err = fmt.Errorf("%w: entry %d does not fit it: %w", errRebuild, e.Position, err)
		}
		return err
	case commitlog.Schema:
		if err := raise(f.conn, b.schema, e.Schema); err != nil {
			return err
		}
		b.schema = e.Schema
		return nil
	case commitlog.Snapshot:
		return fmt.Errorf("%w: entry %d replaces it by a snapshot", errRebuild, e.Position)
	case commitlog.Digest:
		return f.compare(e)
	}
	return fmt.Errorf("%w: entry %d is of the unknown kind %d; install the newer program", journal.ErrNewer, e.Position,
		e.Kind)
}

func (b *batch) commit() error {
	f := b.f
	t := &tx{conn: f.conn}
	if err := loadCounters(f.conn); err != nil {
		return err
	}
	if err := t.exec("COMMIT"); err != nil {
		return err
	}
	b.open = false
	f.at, f.schema = b.at, b.schema
	f.since.Entries += b.entries
	if f.at.Head%f.every != 0 {
		return nil
	}
	digest, err := stateDigest(f.conn)
	f.digests[f.at.Head] = digestBody(f.at.Head, digest)
	return err
}

// end commits what was applied before an error of the next entry.
func (b *batch) end(err error) error {
	if !b.open {
		return err
	}
	if err == nil {
		err = b.commit()
	}
	if !b.f.conn.AutocommitEnabled() {
		err = errors.Join(err, (&tx{conn: b.f.conn}).exec("ROLLBACK"))
	}
	return err
}

// compare compares the owner's digest with that of the copy.
func (f *Follower) compare(e commitlog.Entry) error {
	if len(e.Body) < 8 {
		return fmt.Errorf("%w: entry %d is no digest", commitlog.ErrBroken, e.Position)
	}
	at := int64(binary.BigEndian.Uint64(e.Body)) //nolint:gosec // as written
	own := f.digests[at]
	for n := range f.digests {
		if n <= at {
			delete(f.digests, n)
		}
	}
	if own != nil && !bytes.Equal(own, e.Body) {
		return fmt.Errorf("%w: at entry %d it differs from the owner's state", errRebuild, at)
	}
	return nil
}

// raise migrates a copy within a transaction. The log's order makes that deterministic.
func raise(conn *sqlite.Conn, from, to int) error {
	for version := from; version < to; version++ {
		if err := script(conn, migrations[version], fmt.Sprintf("PRAGMA user_version=%d", version+1)); err != nil {
			return fmt.Errorf("migrate from version %d: %w", version, err)
		}
	}
	return nil
}

func script(conn *sqlite.Conn, scripts ...string) error {
	for _, s := range scripts {
		if len(s) > 7 && s[:7] == "PRAGMA " { // journal_mode does not change in a savepoint
			if err := sqlitex.ExecuteTransient(conn, s, nil); err != nil {
				return err
			}
		} else if err := sqlitex.ExecScript(conn, s); err != nil {
			return err
		}
	}
	return nil
}
