package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Check reads a store without changing it, and says what is wrong with it. One
// that does not exist is fine.
func Check(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := check(path); err != nil {
		return fmt.Errorf("the store %s: %w", path, explain(err))
	}
	return nil
}

func check(path string) error {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return err
	}
	defer conn.Close()
	version, err := userVersion(conn)
	if err != nil {
		return err
	}
	if version > len(migrations) {
		return fmt.Errorf("%w: its version is %d, this program knows %d", journal.ErrNewer, version, len(migrations))
	}
	return sqlitex.ExecuteTransient(conn, "PRAGMA quick_check(1)", &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error {
			if word := stmt.ColumnText(0); word != "ok" {
				return fmt.Errorf("%w: %s: restore a backup, or move the file away to start afresh", journal.ErrDamaged, word)
			}
			return nil
		},
	})
}
