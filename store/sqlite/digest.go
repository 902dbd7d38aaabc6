package sqlite

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/store/commitlog"
)

// A digest of the whole state, at every position that is a multiple of an interval, shows
// whether the log carries everything. The owner appends its own later, when it is
// computed; the others compare.

func digestEvery(o Options) int64 {
	if o.DigestEvery > 0 {
		return o.DigestEvery
	}
	return 1 << 16
}

// digestBody is the body of an entry: position and digest.
func digestBody(at int64, digest [sha256.Size]byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(at)), digest[:]...) //nolint:gosec // a position
}

// Digest is a SHA-256 of all rows of a state.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a closed store.
func DigestOf(path string) (d Digest, err error) {
	err = inspect(path, func(conn *sqlite.Conn) error {
		d, err = stateDigest(conn)
		return err
	})
	return d, err
}

// stateDigest hashes all rows that the log leads to, in the order of their keys.
func stateDigest(conn *sqlite.Conn) (digest [sha256.Size]byte, err error) {
	t := &tx{conn: conn}
	var tables []string
	err = t.query(func(stmt *sqlite.Stmt) error {
		tables = append(tables, stmt.ColumnText(0))
		return nil
	}, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('log_position', 'sqlite_stat1', "+
		"'sqlite_stat4') ORDER BY name")
	h := sha256.New()
	for _, table := range tables {
		if err == nil {
			err = hashTable(t, h, table)
		}
	}
	h.Sum(digest[:0])
	return digest, err
}

func hashTable(t *tx, h hash.Hash, table string) error {
	order := ""
	err := t.query(func(stmt *sqlite.Stmt) error {
		if order != "" {
			order += ", "
		}
		order += stmt.ColumnText(0)
		return nil
	}, "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", table)
	if err != nil {
		return err
	}
	if order == "" { // sqlite_sequence
		order = "1"
	}
	fmt.Fprintf(h, "table %s\n", table)
	var number [9]byte
	var value []byte
	return t.query(func(stmt *sqlite.Stmt) error {
		for i := range stmt.ColumnCount() {
			kind := stmt.ColumnType(i)
			number[0] = byte(kind) //nolint:gosec // one of five
			n := stmt.ColumnInt64(i)
			if kind != sqlite.TypeInteger {
				n = int64(stmt.ColumnLen(i))
				value = append(value[:0], make([]byte, n)...)
				stmt.ColumnBytes(i, value)
			}
			binary.BigEndian.PutUint64(number[1:], uint64(n)) //nolint:gosec // any 64 bits
			h.Write(number[:])
			if kind != sqlite.TypeInteger {
				h.Write(value)
			}
		}
		return nil
	}, "SELECT * FROM "+table+" ORDER BY "+order)
}

// compareStates lets the others compare their state with the owner's. The writing
// goroutine calls it after each group.
func (s *Store) compareStates() {
	l := s.logged
	if l == nil || l.over() != nil {
		return
	}
	if body := l.digest.Swap(nil); body != nil {
		t := &tx{conn: s.write}
		err := t.exec("BEGIN IMMEDIATE")
		if err == nil {
			if err = l.store(t, commitlog.Digest, *body); err != nil {
				_ = t.exec("ROLLBACK") // it is left out
			}
		}
	}
	if l.at.Head%l.every == 0 && l.at.Head > l.digested {
		l.digested = l.at.Head
		s.digestLater(l.at.Head)
	}
}

// digestLater computes the digest of the present state on a connection of its own.
func (s *Store) digestLater(at int64) {
	s.submit.RLock()
	defer s.submit.RUnlock()
	if s.done {
		return
	}
	conn, err := sqlite.OpenConn(s.path, sqlite.OpenReadOnly)
	if err != nil {
		return
	}
	t := &tx{conn: conn}
	if t.exec("BEGIN") != nil {
		_ = conn.Close()
		return
	}
	if p, err := readPlace(conn); err != nil || p.Head != at { // begins the snapshot
		_ = conn.Close()
		return
	}
	conn.SetInterrupt(s.copying.Done())
	s.copies.Go(func() {
		defer conn.Close()
		if digest, err := stateDigest(conn); err == nil {
			body := digestBody(at, digest)
			s.logged.digest.Store(&body)
		}
	})
}
