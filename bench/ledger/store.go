package ledger

import (
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	store "github.com/switchboard-run/switchboard/store/sqlite"
)

// Pending returns the unfinished work in a store: unsettled deliveries, and open turns and
// calls.
func Pending(path string) (left []string) {
	err := store.Unsettled(path, func(s journal.Subscription, d journal.Delivery, e *busv1.Event) {
		if s.ParkedAt == 0 {
			left = append(left, fmt.Sprintf("%s|%s|%d|%s|%d|%s", s.Extension, e.GetTopic(), d.Seq, d.State, d.Attempts,
				d.Reason))
		}
	})
	if err != nil {
		left = append(left, "the store: "+err.Error())
	}
	return append(left, query(path, `SELECT 'turn', id, session, inputs FROM turn WHERE outcome = ''
		UNION ALL SELECT 'call', id, turn, name FROM call WHERE state < 2`)...)
}

// Dead returns the deliveries that a store has given up.
func Dead(path string) []string {
	return query(path, `SELECT e.topic, d.reason FROM delivery d JOIN event e ON e.seq = d.seq WHERE d.state = 3`)
}

// query reads the store of a running kernel: one string per row.
func query(path, sql string) []string {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return []string{"the store: " + err.Error()}
	}
	defer conn.Close() //nolint:errcheck // it was only read
	var rows []string
	err = sqlitex.Execute(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		columns := make([]string, s.ColumnCount())
		for i := range columns {
			columns[i] = s.ColumnText(i)
		}
		rows = append(rows, strings.Join(columns, "|"))
		return nil
	}})
	if err != nil {
		rows = append(rows, "the store: "+err.Error())
	}
	return rows
}
