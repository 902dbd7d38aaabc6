package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// query reads the store beside the kernel: one string for each row.
func (w *world) query(sql string, args ...any) []string {
	w.t.Helper()
	conn, err := sqlite.OpenConn(w.file("switchboard.db"), sqlite.OpenReadOnly)
	if err != nil {
		w.t.Fatalf("opening the store: %v", err)
	}
	defer func() { _ = conn.Close() }()
	var rows []string
	err = sqlitex.Execute(conn, sql, &sqlitex.ExecOptions{Args: args, ResultFunc: func(s *sqlite.Stmt) error {
		columns := make([]string, s.ColumnCount())
		for i := range columns {
			columns[i] = s.ColumnText(i)
		}
		rows = append(rows, strings.Join(columns, "|"))
		return nil
	}})
	if err != nil {
		w.t.Fatalf("reading the store: %v", err)
	}
	return rows
}

// pending are the deliveries that nobody has settled.
func (w *world) pending() []string {
	w.t.Helper()
	return w.query(`SELECT s.extension, e.topic, d.seq, d.state, d.attempts, d.reason FROM delivery d
		JOIN subscription s ON s.id = d.subscription JOIN event e ON e.seq = d.seq WHERE d.state < 2 AND s.parked_at = 0`)
}

// settled waits until nothing is under way: what was not sent by then is not
// sent at all.
func (w *world) settled() {
	w.t.Helper()
	var left []string
	if !w.waitFor(func() bool { left = w.pending(); return len(left) == 0 }) {
		w.t.Fatalf("this is still under way:\n%s", strings.Join(left, "\n"))
	}
}

// dead are the dead letters, with their reasons.
func (w *world) dead() []string {
	w.t.Helper()
	return w.query(`SELECT e.topic, d.reason FROM delivery d JOIN event e ON e.seq = d.seq WHERE d.state = 3`)
}

// count is how many events of a topic there are.
func (w *world) count(topic string) (n int) {
	w.t.Helper()
	_, _ = fmt.Sscan(w.query(`SELECT count(*) FROM event WHERE topic = ?`, topic)[0], &n)
	return n
}

// storeSize is a limit for the size of files, in KiB, that the store reaches
// soon.
func (w *world) storeSize() string {
	w.t.Helper()
	var largest int64
	for _, name := range []string{"switchboard.db", "switchboard.db-wal"} {
		if info, err := os.Stat(w.file(name)); err == nil {
			largest = max(largest, info.Size())
		}
	}
	return strconv.FormatInt(largest/1024+200, 10)
}
