package sqlite

import (
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
	"github.com/switchboard-run/switchboard/store/commitlog/commitlogtest"
)

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

// What a log has got is enough to have the whole store elsewhere.
func TestALogGetsEveryChange(t *testing.T) {
	t.Parallel()
	n := newNode(t, &commitlogtest.Memory{})
	for i := range 50 {
		must(t, change(n.Store, i))
	}
	other := follow(t, n.log, "other")
	want, got := rows(t, reader(t, n.Store)), rows(t, other.conn)
	if !slices.Equal(got, want) || len(got) < 200 {
		t.Errorf("the log leads to %d rows, the store has %d", len(got), len(want))
	}
}

// What was not sent to the log is not committed, and the class of its error is kept.
func TestWhatIsNotSentIsNotCommitted(t *testing.T) {
	t.Parallel()
	fault := commitlogtest.None
	log := &commitlogtest.Memory{Faulty: func() commitlogtest.Fault { return fault }}
	n := newNode(t, log)
	must(t, change(n.Store, 1))
	before := rows(t, reader(t, n.Store))
	fault = commitlogtest.Unsent
	if err := change(n.Store, 2); !errors.Is(err, journal.ErrStalled) {
		t.Errorf("got %v, want %v", err, journal.ErrStalled)
	}
	if after := rows(t, reader(t, n.Store)); !slices.Equal(after, before) {
		t.Error("the store has changed")
	}
	fault = commitlogtest.None
	must(t, change(n.Store, 3))
	other := follow(t, log, "other")
	if want, got := rows(t, reader(t, n.Store)), rows(t, other.conn); !slices.Equal(got, want) {
		t.Errorf("after the failures the log leads to %d rows, the store has %d", len(got), len(want))
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
