package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// follower is a Log that applies what it gets to another store.
type follower struct {
	conn *sqlite.Conn
	fail error
}

func (f *follower) Append(changes []byte) error {
	if f.fail != nil {
		return f.fail
	}
	return f.conn.ApplyChangeset(bytes.NewReader(changes), nil,
		func(sqlite.ConflictType, *sqlite.ChangesetIterator) sqlite.ConflictAction {
			return sqlite.ChangesetAbort
		})
}

// rows are all rows of all tables that a log has to carry.
func rows(t *testing.T, conn *sqlite.Conn) (all []string) {
	t.Helper()
	var tables []string
	must(t, sqlitex.Execute(conn, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "+
		"ORDER BY name", &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error { tables = append(tables, stmt.ColumnText(0)); return nil },
	}))
	for _, table := range tables {
		must(t, sqlitex.Execute(conn, "SELECT * FROM "+table, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			row := table
			for i := range stmt.ColumnCount() {
				row += "|" + stmt.ColumnText(i)
			}
			all = append(all, row)
			return nil
		}}))
	}
	slices.Sort(all)
	return all
}

// logged opens a store with a log that follows it, from the same beginning.
func logged(t *testing.T) (*Store, *follower) {
	t.Helper()
	dir := t.TempDir()
	first, err := Open(filepath.Join(dir, "store.db"))
	must(t, err)
	must(t, first.Backup(context.Background(), filepath.Join(dir, "follower.db")))
	must(t, first.Close())
	conn, err := sqlite.OpenConn(filepath.Join(dir, "follower.db"), sqlite.OpenReadWrite)
	must(t, err)
	f := &follower{conn: conn}
	s, err := OpenWith(filepath.Join(dir, "store.db"), Options{Log: f})
	must(t, err)
	must(t, sqlitex.ExecuteTransient(conn, fmt.Sprintf("UPDATE epoch SET number = %d", s.Epoch()), nil))
	t.Cleanup(func() { _ = s.Close(); _ = conn.Close() })
	return s, f
}

func change(s *Store, i int) error {
	return journal.Do(context.Background(), s, func(tx journal.Tx) error {
		sub := &journal.Subscription{Extension: "x", Pattern: fmt.Sprint("topic.", i)}
		turn := &journal.Turn{Session: 1, Person: "p1", StartedAt: 1}
		_, err := tx.KVPut("x", fmt.Sprint(i%7), fmt.Append(nil, i))
		e := &busv1.Event{Topic: "x.y", Source: "x", Payload: []byte("{}"), CreatedAtUs: 1}
		for _, err := range []error{
			err, tx.PutSubscription(sub), tx.AppendEvent(e), tx.PutTurn(turn),
			tx.PutCall(&journal.Call{Session: 1, Turn: turn.ID, Owner: "e1", Person: "p1", Name: "a/b"}),
			tx.AppendHistory(1, []*busv1.Entry{{Seq: int64(i + 1), Kind: "note", Text: "hello"}}),
		} {
			if err != nil {
				return err
			}
		}
		if i%3 == 0 {
			return tx.KVDelete("x", fmt.Sprint(i%7))
		}
		return tx.AddDelivery(journal.Delivery{Seq: e.GetSeq(), Subscription: sub.ID})
	})
}

// What a Log has got is enough to have the whole store elsewhere.
func TestALogGetsEveryChange(t *testing.T) {
	t.Parallel()
	s, f := logged(t)
	for i := range 50 {
		must(t, change(s, i))
	}
	want, got := rows(t, s.write), rows(t, f.conn)
	if !slices.Equal(got, want) || len(got) < 200 {
		t.Errorf("the log has %d rows, the store %d", len(got), len(want))
	}
}

// What the Log does not take is not committed, and the class of its error is kept.
func TestWhatALogRefusesIsNotCommitted(t *testing.T) {
	t.Parallel()
	s, f := logged(t)
	must(t, change(s, 1))
	before := rows(t, s.write)
	for _, class := range []error{journal.ErrStalled, journal.ErrFenced} {
		f.fail = class
		if err := change(s, 2); !errors.Is(err, class) {
			t.Errorf("got %v, want %v", err, class)
		}
		if after := rows(t, s.write); !slices.Equal(after, before) {
			t.Errorf("%v: the store has changed", class)
		}
	}
	f.fail = nil
	must(t, change(s, 3))
	if want, got := rows(t, s.write), rows(t, f.conn); !slices.Equal(got, want) {
		t.Errorf("after the failures the log has %d rows, the store %d", len(got), len(want))
	}
}

// An event of another process under the next number means that two write.
func TestAnotherWriterIsRecognised(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	s, err := Open(path)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	must(t, change(s, 1))
	must(t, unix.Flock(int(s.owner.file.Fd()), unix.LOCK_UN)) // as on a file system without locks
	other, err := Open(path)
	must(t, err)
	must(t, change(other, 2))
	must(t, other.Close())
	if err := change(s, 4); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("got %v, want %v", err, journal.ErrFenced)
	}
	if err := s.Damage(); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the store says %v of itself, want %v", err, journal.ErrFenced)
	}
}
