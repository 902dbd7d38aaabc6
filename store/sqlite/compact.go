package sqlite

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Compact shrinks a closed store to its contents, if most of it is free.
//
// An open store keeps the space that pruning frees, and reuses it: it stays as large
// as its largest contents. To shrink it while open would delay all commits: each
// freed page costs one page written and another one looked up.
func Compact(path string) error {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return fmt.Errorf("compact %s: %w", path, explain(err))
	}
	pages, err := number(conn, "PRAGMA page_count")
	free := 0
	if err == nil {
		free, err = number(conn, "PRAGMA freelist_count")
	}
	if err == nil && free > pages/2 {
		err = sqlitex.ExecuteTransient(conn, "VACUUM", nil)
	}
	if err = errors.Join(err, conn.Close()); err != nil {
		return fmt.Errorf("compact %s: %w", path, explain(err))
	}
	return nil
}
