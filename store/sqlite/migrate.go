package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// migrate brings a store to the current version, after a backup. It refuses a newer
// version.
func migrate(conn *sqlite.Conn, path string) error {
	version, err := knownVersion(conn)
	if err != nil {
		return err
	}
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA journal_mode=WAL", nil); err != nil {
		return err
	}
	if version == len(migrations) {
		return nil
	}
	if version > 0 {
		if err := backupOld(conn, MigrationBackup(path, version)); err != nil {
			return fmt.Errorf("back up before the migration from version %d: %w", version, err)
		}
	}
	for ; version < len(migrations); version++ {
		script := fmt.Sprintf("%s\nPRAGMA user_version=%d;", migrations[version], version+1)
		if err := sqlitex.ExecScript(conn, script); err != nil { // in one transaction
			return fmt.Errorf("migrate from version %d: %w", version, err)
		}
	}
	return nil
}

// MigrationBackup returns the path of the backup made before a migration from a
// version.
func MigrationBackup(path string, version int) string {
	return fmt.Sprintf("%s.v%d.backup", path, version)
}

// backupOld writes a backup atomically.
func backupOld(conn *sqlite.Conn, backup string) error {
	unfinished := backup + ".unfinished"
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := copyTo(context.Background(), conn, unfinished); err != nil {
		return err
	}
	return moveDurably(unfinished, backup)
}

// knownVersion returns the version of a store, and refuses a newer one.
func knownVersion(conn *sqlite.Conn) (int, error) {
	version, err := userVersion(conn)
	if err == nil && version > len(migrations) {
		err = fmt.Errorf("%w: its version is %d, and this program supports %d; install the newer program again, or restore "+
			"a backup",
			journal.ErrNewer, version, len(migrations))
	}
	return version, err
}

func userVersion(conn *sqlite.Conn) (int, error) { return number(conn, "PRAGMA user_version") }

// number returns the only value of a query.
func number(conn *sqlite.Conn, query string) (n int, err error) {
	err = sqlitex.ExecuteTransient(conn, query, &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error {
			n = stmt.ColumnInt(0)
			return nil
		},
	})
	return n, err
}
