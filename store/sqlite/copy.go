package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Steps of a copy.
const (
	stepPages    = 64
	stepsPerSync = 16 // 4 MiB
	stepPause    = time.Millisecond
)

// Backup implements journal.Store. It has its own connection, so views do not wait for
// it.
func (s *Store) Backup(ctx context.Context, path string) error {
	s.submit.RLock()
	if s.done {
		s.submit.RUnlock()
		return journal.ErrClosed
	}
	s.copies.Add(1)
	s.submit.RUnlock()
	defer s.copies.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.copying, func() { cancel(journal.ErrClosed) })()
	if err := ctx.Err(); err != nil {
		return err
	}
	conn, err := sqlite.OpenConn(s.path, sqlite.OpenReadOnly)
	if err == nil {
		defer conn.Close()
		conn.SetInterrupt(ctx.Done())
		err = copyTo(ctx, conn, path)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("write the backup %s: %w", path, explain(err))
}

// Copy writes a consistent copy of a closed store to a new file. It does not change or
// migrate the store.
func Copy(ctx context.Context, path, to string) error {
	err := inspect(path, func(conn *sqlite.Conn) error {
		conn.SetInterrupt(ctx.Done())
		return copyTo(ctx, conn, to)
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("copy the store %s: %w", path, err)
}

// copyTo writes a copy that only this user can read, and returns when it is durable.
// It pauses between steps, so that it does not block the processor or the disk.
func copyTo(ctx context.Context, conn *sqlite.Conn, path string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	to, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(path))
	}
	defer func() {
		if err = errors.Join(err, to.Close()); err == nil {
			err = errors.Join(f.Sync(), syncDir(path))
		}
		_ = f.Close()
		if err != nil {
			_ = os.Remove(path)
		}
	}()
	// One snapshot for all steps, without later commits.
	if err := sqlitex.ExecuteTransient(conn, "BEGIN", nil); err != nil {
		return err
	}
	defer func() { _ = sqlitex.ExecuteTransient(conn, "ROLLBACK", nil) }()
	if _, err := number(conn, "SELECT count(*) FROM sqlite_schema"); err != nil {
		return err
	}
	for _, pragma := range []string{"PRAGMA synchronous=OFF", "PRAGMA journal_mode=OFF"} { // an error removes it
		if err := sqlitex.ExecuteTransient(to, pragma, nil); err != nil {
			return err
		}
	}
	b, err := sqlite.NewBackup(to, "main", conn, "main")
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	for n := 1; ; n++ {
		more, err := b.Step(stepPages)
		if err != nil || !more {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if n%stepsPerSync == 0 {
			if err := f.Sync(); err != nil {
				return err
			}
		}
		time.Sleep(stepPause)
	}
}
