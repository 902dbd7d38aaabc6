// Package sqlite is the embedded journal engine: one file in WAL mode with
// synchronous=FULL, one goroutine that writes. It commits whatever is waiting
// as one group, without lingering. A member that fails takes nothing with it: if
// it has written something, the group is applied again, with a savepoint for
// each member. Reads run beside it on connections of their own.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

const (
	readers     = 2
	queueLength = 4096 // submitters beyond it wait
	groupLimit  = 1024 // members of one transaction
)

// Store implements journal.Store.
type Store struct {
	path  string
	write *sqlite.Conn
	read  *sqlitex.Pool

	queue   chan journal.Update
	closed  chan struct{}
	once    sync.Once
	closing error        // of Close
	submit  sync.RWMutex // held for reading while submitting, for writing to close
	done    bool
	seq     int64 // newest event, of the writing goroutine
}

var _ journal.Store = (*Store)(nil)

// Open opens or creates the store and brings it to the current version, after a
// backup beside the file when there was an older one.
func Open(path string) (*Store, error) {
	s, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", path, explain(err))
	}
	return s, nil
}

func open(path string) (s *Store, err error) {
	if err := createPrivate(path); err != nil {
		return nil, err
	}
	if err := checkSize(path); err != nil {
		return nil, err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close()
		}
	}()
	conn.SetBlockOnBusy()
	if err := migrate(conn, path); err != nil {
		return nil, err
	}
	for _, pragma := range []string{"PRAGMA synchronous=FULL", "PRAGMA foreign_keys=OFF", "PRAGMA temp_store=MEMORY"} {
		if err := sqlitex.ExecuteTransient(conn, pragma, nil); err != nil {
			return nil, err
		}
	}
	pool, err := sqlitex.NewPool(path, sqlitex.PoolOptions{
		Flags: sqlite.OpenReadOnly, PoolSize: readers,
	})
	if err != nil {
		return nil, err
	}
	s = &Store{
		path: path, write: conn, read: pool,
		queue: make(chan journal.Update, queueLength), closed: make(chan struct{}),
	}
	if s.seq, err = (&tx{conn: conn}).LastSeq(); err != nil {
		_ = pool.Close()
		return nil, err
	}
	go s.writeLoop()
	return s, nil
}

// createPrivate creates the file for the user alone; SQLite would use the umask.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrExist) {
		f, err = os.OpenFile(path, os.O_RDWR, 0o600)
	} else if err == nil {
		err = errors.Join(syncDir(path), f.Sync())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", hintOpen, err)
	}
	return f.Close()
}

// syncDir makes the entry of a new file durable.
func syncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// checkSize refuses what SQLite would take for a new store: a file that is
// shorter than any store, and an empty one with a log of changes beside it,
// which would be dropped.
func checkSize(path string) error {
	file, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case file.Size() >= 512:
		return nil
	case file.Size() > 0:
		return fmt.Errorf("%w (it has only %d bytes): %s", journal.ErrDamaged, file.Size(), hintDamaged)
	}
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		return fmt.Errorf("%w (the file is empty, but %s-wal is not): %s", journal.ErrDamaged, path, hintDamaged)
	}
	return nil
}

func migrate(conn *sqlite.Conn, path string) error {
	version, err := userVersion(conn)
	if err != nil {
		return err
	}
	if version > len(migrations) {
		return fmt.Errorf("%w: its version is %d, this program knows %d; install the newer program again, or restore a backup",
			journal.ErrNewer, version, len(migrations))
	}
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA journal_mode=WAL", nil); err != nil {
		return err
	}
	if version == len(migrations) {
		return nil
	}
	if version > 0 {
		backup := fmt.Sprintf("%s.v%d.backup", path, version)
		if err := os.Remove(backup); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := backupTo(conn, backup); err != nil {
			return fmt.Errorf("backing up before the migration from version %d: %w", version, err)
		}
	}
	for ; version < len(migrations); version++ {
		script := fmt.Sprintf("%s\nPRAGMA user_version=%d;", migrations[version], version+1)
		if err := sqlitex.ExecScript(conn, script); err != nil { // in one transaction
			return fmt.Errorf("migrating from version %d: %w", version, err)
		}
	}
	return nil
}

func userVersion(conn *sqlite.Conn) (version int, err error) {
	err = sqlitex.ExecuteTransient(conn, "PRAGMA user_version", &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error {
			version = stmt.ColumnInt(0)
			return nil
		},
	})
	return version, err
}

// backupTo writes a copy, for the user alone, and returns when it is durable.
func backupTo(conn *sqlite.Conn, path string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(path)
		}
	}()
	if err := sqlitex.ExecuteTransient(conn, "VACUUM INTO ?", &sqlitex.ExecOptions{Args: []any{path}}); err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), syncDir(path)) // SQLite does not sync this one
}

const (
	hintOpen    = "the file cannot be opened for writing: check that its directory exists and is writable, or choose another SWITCHBOARD_HOME"
	hintDamaged = "restore a backup, or move the file away to start afresh"
)

// explain says in words what a person can do about an error of SQLite.
func explain(err error) error {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultNotADB, sqlite.ResultCorrupt:
		return fmt.Errorf("%w (%w): %s", journal.ErrDamaged, err, hintDamaged)
	case sqlite.ResultFull:
		return fmt.Errorf("the disk is full: make room, nothing that was accepted is lost: %w", err)
	case sqlite.ResultReadOnly, sqlite.ResultCantOpen:
		return fmt.Errorf("%s: %w", hintOpen, err)
	}
	return err
}

// View implements journal.Store.
func (s *Store) View(ctx context.Context, read func(journal.Reader) error) error {
	conn, err := s.read.Take(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.Join(journal.ErrClosed, err)
	}
	defer s.read.Put(conn)
	t := &tx{conn: conn}
	if err := t.exec("BEGIN"); err != nil {
		return viewError(ctx, err)
	}
	defer func() {
		conn.SetInterrupt(nil)
		_ = t.exec("COMMIT")
	}()
	return viewError(ctx, read(t))
}

func viewError(ctx context.Context, err error) error {
	if sqlite.ErrCode(err) != sqlite.ResultInterrupt {
		return explain(err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return journal.ErrClosed // interrupts what is being read
}

// Backup implements journal.Store.
func (s *Store) Backup(ctx context.Context, path string) error {
	conn, err := s.read.Take(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.Join(journal.ErrClosed, err)
	}
	defer s.read.Put(conn)
	if err := backupTo(conn, path); err != nil {
		return fmt.Errorf("writing the backup %s: %w", path, viewError(ctx, err))
	}
	return nil
}

// Size implements journal.Store.
func (s *Store) Size() int64 {
	var size int64
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(s.path + suffix); err == nil {
			size += info.Size()
		}
	}
	return size
}
