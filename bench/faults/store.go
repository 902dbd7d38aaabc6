package main

import (
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// pending is what the store says is under way: deliveries that nobody has
// settled, and turns and calls that have not ended.
func (h *home) pending() []string {
	return h.query(`SELECT s.extension, e.topic, d.seq, d.state, d.attempts, d.reason FROM delivery d
		JOIN subscription s ON s.id = d.subscription JOIN event e ON e.seq = d.seq WHERE d.state < 2 AND s.parked_at = 0
		UNION ALL SELECT s.extension, s.pattern, b.open || ' in a block', 0, 0, '' FROM delivery_block b
		JOIN subscription s ON s.id = b.subscription WHERE b.open > 0 AND s.parked_at = 0
		UNION ALL SELECT 'turn', id, session, inputs, '', '' FROM turn WHERE outcome = ''
		UNION ALL SELECT 'call', id, turn, name, state, '' FROM call WHERE state < 2`)
}

// query reads the store beside the kernel: one string for each row.
func (h *home) query(sql string) []string {
	conn, err := sqlite.OpenConn(h.file("switchboard.db"), sqlite.OpenReadOnly)
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
