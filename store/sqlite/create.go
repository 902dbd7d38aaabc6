package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// prepare creates the store if there is none, and checks that its files look like
// those of a store. A new store is created under another name and renamed, so an
// empty file under its own name is damage.
func prepare(path string, volatile bool) error {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
			return fmt.Errorf("%w (the file is gone, but %s-wal is not): %s", journal.ErrDamaged, path, hintDamaged)
		}
		return create(path, volatile)
	}
	if err := checkKinds(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", hintOpen, err)
	}
	_ = f.Close()
	return checkFiles(path)
}

// create creates a new store atomically.
func create(path string, volatile bool) error {
	return createWith(path, volatile, func(conn *sqlite.Conn) error { return migrate(conn, path+".new") })
}

// createWith creates a new file atomically, with what fill puts into it.
func createWith(path string, volatile bool, fill func(*sqlite.Conn) error) error {
	fresh := path + ".new"
	for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
		if err := os.Remove(fresh + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", hintOpen, err)
		}
	}
	if err := createPrivate(fresh); err != nil {
		return fmt.Errorf("%s: %w", hintOpen, err)
	}
	conn, err := sqlite.OpenConn(fresh, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	err = sqlitex.ExecuteTransient(conn, synchronous(volatile), nil)
	if err == nil {
		err = fill(conn)
	}
	if err == nil { // Close would do it too, but without saying that the disk is full
		err = sqlitex.ExecuteTransient(conn, "PRAGMA wal_checkpoint(TRUNCATE)", nil)
	}
	if err := errors.Join(err, conn.Close()); err != nil {
		return err
	}
	if volatile {
		return os.Rename(fresh, path)
	}
	return moveDurably(fresh, path)
}

// createPrivate creates a file for the user alone; SQLite would use the umask.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// moveDurably renames a finished file, and syncs it and its directory.
func moveDurably(from, to string) error {
	f, err := os.OpenFile(from, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", from, err)
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(to)
}

// syncDir makes the entry of a file durable.
func syncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
