package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
)

// Snapshot publishes a checked copy of the present state in the log: what a new node
// begins with, and up to where the log may be truncated. Commits go on meanwhile.
func (s *Store) Snapshot(ctx context.Context, log commitlog.Log) (commitlog.Position, error) {
	if s.logged == nil {
		return commitlog.Position{}, errNoLog
	}
	name := s.path + ".snapshot"
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return commitlog.Position{}, err
	}
	if err := s.Backup(ctx, name); err != nil {
		return commitlog.Position{}, err
	}
	defer removeStore(name)
	at, err := checkCopy(name)
	if err == nil {
		err = upload(ctx, log, s.logged.tenure, at.Position, name)
	}
	if err != nil {
		return commitlog.Position{}, fmt.Errorf("publish a snapshot: %w", err)
	}
	return at.Position, nil
}

// Seed makes a closed store, of any version, the state of an empty log, or of any log if
// replace is set: a home that joins, or a restored backup. With doubt, what waits in it
// is marked as by MarkUncertain. The store itself is not changed.
func Seed(ctx context.Context, path string, log commitlog.Log, t commitlog.Tenure, replace, doubt bool) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("bring the store %s into the cluster: %w", path, explain(err))
		}
	}()
	before := t.State()
	if before.Head > 0 && !replace {
		return fmt.Errorf("%w: the cluster has a state already", journal.ErrRefused)
	}
	name := path + ".seed"
	removeStore(name)
	defer removeStore(name)
	if err := Copy(ctx, path, name); err != nil {
		return err
	}
	l := newLogged(t, place{before.Position, 0}, len(migrations), Options{})
	e := l.seal(commitlog.Snapshot, nil)
	if err := prepareSeed(name, e, doubt); err != nil {
		return err
	}
	if _, err := checkCopy(name); err != nil {
		return err
	}
	if err := t.Append(e); err != nil { // others wait for the snapshot now; if it never comes, Seed it again
		return err
	}
	return upload(ctx, log, t, e.At(), name)
}

// prepareSeed makes a copy of a store the snapshot at an entry.
func prepareSeed(name string, e commitlog.Entry, doubt bool) error {
	if doubt {
		if err := MarkUncertain(name); err != nil {
			return err
		}
	}
	conn, err := sqlite.OpenConn(name, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	err = migrate(conn, name)
	if err == nil {
		err = script(conn, dropLogTables, logTables)
	}
	if err == nil {
		err = storeCounters(&tx{conn: conn})
	}
	if err == nil {
		err = setPlace(conn, e)
	}
	if err == nil {
		err = sqlitex.ExecuteTransient(conn, "PRAGMA wal_checkpoint(TRUNCATE)", nil)
	}
	return errors.Join(err, conn.Close())
}

// checkCopy reads all of a closed copy and returns its place in the log.
func checkCopy(path string) (at place, err error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return at, explain(err)
	}
	if err = checkOurs(conn); err == nil {
		err = runCheck(conn, "PRAGMA quick_check(1)")
	}
	if err == nil {
		at, err = readPlace(conn)
	}
	return at, explain(errors.Join(err, conn.Close()))
}

func upload(ctx context.Context, log commitlog.Log, t commitlog.Tenure, at commitlog.Position, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return log.PutSnapshot(ctx, t, at, f)
}

// download writes the snapshot to the path of the copy. commitlog.ErrNone: there is none.
func (f *Follower) download(ctx context.Context) error {
	at, r, err := f.log.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	name := f.path + ".new"
	removeStore(name)
	if err := createPrivate(name); err != nil {
		return err
	}
	defer removeStore(name)
	to, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, r)
	if err = errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("fetch the snapshot: %w", err)
	}
	is, err := checkCopy(name)
	if err == nil && is.Position != at {
		err = fmt.Errorf("%w: the snapshot is of entry %d, and is published for %d", commitlog.ErrBroken, is.Head, at.Head)
	}
	if err != nil {
		return err
	}
	return moveDurably(name, f.path)
}

// removeStore removes the files of a store.
func removeStore(path string) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		_ = os.Remove(path + suffix)
	}
}
