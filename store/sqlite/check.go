package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// smallStore is the size up to which opening a store checks all of it for damage.
// That takes about 3 ms per MiB.
const smallStore = 8 << 20

// Check reads all of a closed store without changing it, and returns an error if it
// is damaged. A store that does not exist is fine.
func Check(path string) error {
	if !exists(path) && !exists(path+"-wal") {
		return nil
	}
	err := look(path, func(conn *sqlite.Conn) error {
		if err := ours(conn); err != nil {
			return err
		}
		return whole(conn, "PRAGMA quick_check(1)")
	})
	if err != nil {
		return fmt.Errorf("the store %s: %w", path, err)
	}
	return nil
}

// glance refuses a store that is not for this program, and a small one that is
// damaged. It cannot write: closing a store that could be written would end its
// log, and with it what may still be of use in it.
func glance(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := ours(conn); err != nil || info.Size() > smallStore {
		return err
	}
	return whole(conn, "PRAGMA quick_check(1)")
}

// ours refuses a database that is not a store of this program.
func ours(conn *sqlite.Conn) error {
	version, err := knownVersion(conn)
	if err != nil {
		return err
	}
	known, err := number(conn, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('event', 'kv', 'session', 'history')")
	if err == nil && (version == 0 || known < 4) { // one of this program is never seen without them
		err = fmt.Errorf("%w (it is a database, but not one of Switchboard): %s", journal.ErrDamaged, hintDamaged)
	}
	return err
}

// whole runs one of SQLite's checks.
func whole(conn *sqlite.Conn, check string) error {
	return sqlitex.ExecuteTransient(conn, check, &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error {
			if word := stmt.ColumnText(0); word != "ok" {
				return fmt.Errorf("%w (%s): %s", journal.ErrDamaged, word, hintDamaged)
			}
			return nil
		},
	})
}

// checkSize refuses what SQLite would take for a new store: a file that is
// shorter than any store. SQLite would also drop the log of changes beside it.
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
	return fmt.Errorf("%w (the file is empty): %s", journal.ErrDamaged, hintDamaged)
}

// checkFiles looks at the files of a store as such.
func checkFiles(path string) error {
	for _, check := range []func(string) error{checkKinds, checkSize, checkLog} {
		if err := check(path); err != nil {
			return err
		}
	}
	return nil
}

// look reads a closed store through other names of its files, so that SQLite
// neither recovers it nor creates files beside it.
func look(path string, read func(*sqlite.Conn) error) error {
	if !exists(path) {
		return fmt.Errorf("%w (the file is gone, but %s-wal is not): %s", journal.ErrDamaged, path, hintDamaged)
	}
	if err := checkFiles(path); err != nil {
		return err
	}
	before := stamps(path)
	dir, err := os.MkdirTemp(filepath.Dir(path), LookPrefix+"*")
	if err != nil { // such as a directory that cannot be written
		if dir, err = os.MkdirTemp("", LookPrefix+"*"); err != nil {
			return err
		}
	}
	defer os.RemoveAll(dir)
	other := filepath.Join(dir, "store")
	if err := os.Link(path, other); err != nil {
		if err := copyFile(path, other); err != nil {
			return err
		}
	}
	if err := copyFile(path+"-wal", other+"-wal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	conn, err := sqlite.OpenConn(other, sqlite.OpenReadOnly)
	if err != nil {
		return explain(err)
	}
	defer conn.Close()
	err = read(conn)
	if err != nil && stamps(path) != before {
		return fmt.Errorf("%s changed while it was being read; is a kernel starting? (%w)", path, err)
	}
	return explain(err)
}

// LookPrefix begins the names of the temporary directories through which stores are
// read. A killed process leaves one behind.
const LookPrefix = ".look-"

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// stamps change when the files of a store do.
func stamps(path string) (s [2]string) {
	for i, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(path + suffix); err == nil {
			s[i] = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
		}
	}
	return s
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
