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
// begins with, and up to where the log may be truncated. Commits go on meanwhile. pace, if
// set, is called before each MiB that is sent.
func (s *Store) Snapshot(ctx context.Context, log commitlog.Log, pace func()) (commitlog.Position, error) {
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
		err = upload(ctx, log, s.logged.tenure, at.Position, name, pace)
	}
	if err != nil {
		return commitlog.Position{}, fmt.Errorf("publish a snapshot: %w", err)
	}
	return at.Position, nil
}

// Seeding is how Seed brings a store into a log.
type Seeding struct {
	Replace bool // of a log that has a state
	// Doubt marks what waits in it, as MarkUncertain does.
	Doubt bool
	// Ready, if set, is called when all is prepared, with the position that the state will
	// have and its digest. The log changes only after it.
	Ready func(at commitlog.Position, digest Digest) error
}

// Seed makes a closed store, of any version, the state of an empty log, or of any log if
// Replace is set: a home that joins, or a restored backup. The store itself is not
// changed. The log has all of the state, or nothing has changed there. acquire is called
// when all is stored: what the tenure has to do then takes an instant.
func Seed(
	ctx context.Context, path string, log commitlog.Log, acquire func() (commitlog.Tenure, error), o Seeding,
) (at commitlog.Position, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("bring the store %s into the cluster: %w", path, explain(err))
		}
	}()
	name := path + ".seed"
	removeStore(name)
	defer removeStore(name)
	if err := Copy(ctx, path, name); err != nil {
		return at, err
	}
	if err := prepareSeed(name, o.Doubt); err != nil {
		return at, err
	}
	if _, err := checkCopy(name); err != nil {
		return at, err
	}
	digest, err := DigestOf(name)
	if err != nil {
		return at, err
	}
	f, err := os.Open(name)
	if err != nil {
		return at, err
	}
	defer f.Close()
	u, err := log.Upload(ctx, f)
	if err != nil {
		return at, err
	}
	t, err := acquire()
	if err != nil {
		return at, err
	}
	before := place{Position: t.State().Position}
	if before.Head > 0 && !o.Replace {
		return at, fmt.Errorf("%w: the cluster has a state already", journal.ErrRefused)
	}
	if before.Head > 0 {
		if before.time, err = timeOf(ctx, log, before.Position); err != nil {
			return at, err
		}
	}
	e := newLogged(t, before, len(migrations), Options{}).seal(commitlog.Snapshot, nil)
	if o.Ready != nil {
		if err := o.Ready(e.At(), digest); err != nil {
			return at, err
		}
	}
	return e.At(), log.Replace(ctx, t, e, u)
}

// timeOf returns the time of an entry; 0: the log does not have it any more.
func timeOf(ctx context.Context, log commitlog.Log, at commitlog.Position) (us int64, err error) {
	err = log.Read(ctx, at.Head-1, func(e commitlog.Entry) error {
		if e.At() == at {
			us = e.Time
		}
		return errFound
	})
	if errors.Is(err, errFound) || errors.Is(err, commitlog.ErrTruncated) {
		err = nil
	}
	return us, err
}

var errFound = errors.New("the entry was found")

// prepareSeed makes a copy of a store one of the state at an entry that is not known yet.
func prepareSeed(name string, doubt bool) error {
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

func upload(
	ctx context.Context, log commitlog.Log, t commitlog.Tenure, at commitlog.Position, name string, pace func(),
) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if pace == nil {
		return log.PutSnapshot(ctx, t, at, f)
	}
	return log.PutSnapshot(ctx, t, at, &paced{from: f, pace: pace})
}

// paced calls pace before each MiB that is read.
type paced struct {
	from io.Reader
	pace func()
	left int // bytes until the next call
}

func (p *paced) Read(b []byte) (int, error) {
	if p.left <= 0 {
		p.pace()
		p.left = 1 << 20
	}
	n, err := p.from.Read(b)
	p.left -= n
	return n, err
}

// download writes the snapshot to the path of the copy. commitlog.ErrNone: there is none.
func (f *Follower) download(ctx context.Context) error {
	at, r, err := f.log.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	return fetch(ctx, f.path, f.log, at, r)
}

// fetch writes a snapshot to a path, when it is whole and checked.
func fetch(ctx context.Context, path string, log commitlog.Log, at commitlog.Position, r io.Reader) error {
	name := path + ".new"
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
	if err == nil && is.Position == (commitlog.Position{}) { // a seed does not know its entry
		is.Position = at
		err = setEntry(ctx, name, log, at)
	}
	if err == nil && is.Position != at {
		err = fmt.Errorf("%w: the snapshot is of entry %d, and is published for %d", commitlog.ErrBroken, is.Head, at.Head)
	}
	if err != nil {
		return err
	}
	return moveDurably(name, path)
}

// setEntry makes a closed copy one of the state at an entry.
func setEntry(ctx context.Context, path string, log commitlog.Log, at commitlog.Position) error {
	us, err := timeOf(ctx, log, at)
	if err != nil {
		return err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	return errors.Join(setPlace(conn, commitlog.Entry{Position: at.Head, Hash: at.Hash, Time: us}), conn.Close())
}

// Build makes a copy of the state at a position: from a snapshot that is not after it,
// and the entries since. Without a snapshot (nil) it applies the log from its beginning.
// It replaces what is at the path.
func Build(
	ctx context.Context, path string, log commitlog.Log, from commitlog.Position, snapshot io.Reader, position int64,
) (p Progress, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("build the state at entry %d: %w", position, explain(err))
		}
	}()
	removeStore(path)
	if snapshot != nil {
		if err := fetch(ctx, path, log, from, snapshot); err != nil {
			return p, err
		}
	}
	f, err := Follow(path, log, Options{})
	if err != nil {
		return p, err
	}
	b := &batch{f: f}
	err = log.Read(ctx, f.at.Head, func(e commitlog.Entry) error {
		if e.Position > position {
			return errBuilt
		}
		return b.add(e)
	})
	if errors.Is(err, errBuilt) {
		err = nil
	}
	err = errors.Join(b.end(err), f.Close())
	if err == nil && f.at.Head != position {
		err = fmt.Errorf("%w: it ends at entry %d", commitlog.ErrBroken, f.at.Head)
	}
	f.since.Position = f.at.Position
	return f.since, err
}

var errBuilt = errors.New("the copy has the position that is wanted")

// MarkMoved makes a closed store, of this program's version, a copy of the state at a
// position of a log, which has become the state's place: Open refuses it from now on.
func MarkMoved(path string, at commitlog.Position) error {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err == nil {
		t := &tx{conn: conn}
		if err = t.exec("BEGIN IMMEDIATE"); err == nil {
			err = script(conn, dropLogTables, logTables)
		}
		if err == nil {
			err = storeCounters(t)
		}
		if err == nil {
			err = setPlace(conn, commitlog.Entry{Position: at.Head, Hash: at.Hash})
		}
		if err == nil {
			err = t.exec("COMMIT")
		}
		if err == nil {
			err = sqlitex.ExecuteTransient(conn, "PRAGMA wal_checkpoint(TRUNCATE)", nil)
		}
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		return fmt.Errorf("mark the store %s as moved into the cluster: %w", path, explain(err))
	}
	return nil
}

// IsCopy reports whether a closed store is a copy of a log's state.
func IsCopy(path string) (copied bool, err error) {
	err = inspect(path, func(conn *sqlite.Conn) error {
		copied, err = isCopy(conn)
		return err
	})
	return copied, err
}

// removeStore removes the files of a store.
func removeStore(path string) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		_ = os.Remove(path + suffix)
	}
}
