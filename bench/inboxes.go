package main

import (
	"fmt"
	"path/filepath"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// inboxes counts the messages in main's inboxes, in the store of a running kernel.
type inboxes struct{ conn *sqlite.Conn }

func (d *bed) inboxes() (inboxes, error) {
	conn, err := sqlite.OpenConn(filepath.Join(d.home, "switchboard.db"), sqlite.OpenReadOnly)
	if err != nil {
		return inboxes{}, fmt.Errorf("open the store: %w", err)
	}
	return inboxes{conn}, nil
}

func (i inboxes) close() { _ = i.conn.Close() }

// count returns the number of messages. Each has a row with its position.
func (i inboxes) count() (n int, err error) {
	const query = `SELECT count(*) FROM kv WHERE owner = 'tasks' AND key LIKE 'order/%/main/%'`
	err = sqlitex.ExecuteTransient(i.conn, query, &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
		n = row.ColumnInt(0)
		return nil
	}})
	if err != nil {
		err = fmt.Errorf("count the messages in the inboxes: %w", err)
	}
	return n, err
}
