package sqlite

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Compact makes a store that nobody has open as small as what is in it, if most
// of it is free.
//
// A store that is in use keeps the space that pruning frees and uses it again: a
// store as it grows by itself is as large as it was when it held the most.
// Shrinking it meanwhile would take a page written, and one more looked up, for
// each page that is freed, on the way of everybody's commits.
func Compact(path string) error {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return fmt.Errorf("making %s smaller: %w", path, explain(err))
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
		return fmt.Errorf("making %s smaller: %w", path, explain(err))
	}
	return nil
}
