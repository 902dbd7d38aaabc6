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

// smallStore is the size up to which Open checks all of a store for damage, which
// takes about 3 ms per MiB.
const smallStore = 8 << 20

// Check reads all of a closed store without changing it, and returns an error if it
// is damaged. A store that does not exist is fine.
func Check(path string) error {
	if !exists(path) && !exists(path+"-wal") {
		return nil
	}
	err := inspect(path, func(conn *sqlite.Conn) error {
		if err := checkOurs(conn); err != nil {
			return err
		}
		return runCheck(conn, "PRAGMA quick_check(1)")
	})
	if err != nil {
		return fmt.Errorf("the store %s: %w", path, err)
	}
	return nil
}

// quickCheck refuses a store that is not of this program, and a small one that is
// damaged. It opens the store read-only: closing a writable one would delete its log,
// which may help to repair it.
func quickCheck(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := checkOurs(conn); err != nil || info.Size() > smallStore {
		return err
	}
	return runCheck(conn, "PRAGMA quick_check(1)")
}

// checkOurs refuses a database that is not a store of this program.
func checkOurs(conn *sqlite.Conn) error {
	version, err := knownVersion(conn)
	if err != nil {
		return err
	}
	known, err := number(conn, "SELECT count(*) FROM sqlite_schema "+
		"WHERE type = 'table' AND name IN ('event', 'kv', 'session', 'history')")
	if err == nil && (version == 0 || known < 4) { // create renames a store only when it has them
		err = fmt.Errorf("%w (it is a database, but not one of Switchboard): %s", journal.ErrDamaged, hintDamaged)
	}
	return err
}

// runCheck runs one of SQLite's checks.
func runCheck(conn *sqlite.Conn, check string) error {
	return sqlitex.ExecuteTransient(conn, check, &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error {
			if word := stmt.ColumnText(0); word != "ok" {
				return fmt.Errorf("%w (%s): %s", journal.ErrDamaged, word, hintDamaged)
			}
			return nil
		},
	})
}

// checkSize refuses a file that is shorter than any store. SQLite would take it for a
// new one, and drop the log beside it.
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

// checkFiles checks the files of a store without SQLite.
func checkFiles(path string) error {
	for _, check := range []func(string) error{checkKinds, checkSize, checkLog} {
		if err := check(path); err != nil {
			return err
		}
	}
	return nil
}

// inspect reads a closed store through a link and a copy of its log in a temporary
// directory, so that SQLite neither recovers the store nor creates files beside it.
func inspect(path string, read func(*sqlite.Conn) error) error {
	if !exists(path) {
		return fmt.Errorf("%w (the file is gone, but %s-wal is not): %s", journal.ErrDamaged, path, hintDamaged)
	}
	if err := checkFiles(path); err != nil {
		return err
	}
	before := stamps(path)
	dir, err := os.MkdirTemp(filepath.Dir(path), InspectPrefix+"*")
	if err != nil { // such as a read-only directory
		if dir, err = os.MkdirTemp("", InspectPrefix+"*"); err != nil {
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

// InspectPrefix begins the names of temporary directories beside a store. A killed
// process leaves one.
const InspectPrefix = ".inspect-"

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// stamps returns a value that changes when the files of a store do.
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
