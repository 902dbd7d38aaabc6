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
	if err := conn.CreateFunction("waits", &sqlite.FunctionImpl{NArgs: 2, Deterministic: true, Scalar: waits}); err != nil {
		w.t.Fatal(err)
	}
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
		JOIN subscription s ON s.id = d.subscription JOIN event e ON e.seq = d.seq WHERE d.state < 2 AND s.parked_at = 0
		UNION ALL SELECT s.extension, s.pattern, b.open || ' in a block', 0, 0, '' FROM delivery_block b
		JOIN subscription s ON s.id = b.subscription WHERE b.open > 0 AND s.parked_at = 0`)
}

// waiting are the payloads of the events of a topic with a delivery that no
// handler has and that is not settled.
func (w *world) waiting(topic string) []string {
	w.t.Helper()
	return w.query(`SELECT e.payload FROM event e WHERE e.topic = ? AND (
		EXISTS (SELECT 1 FROM delivery d WHERE d.seq = e.seq AND d.state = 0) OR
		EXISTS (SELECT 1 FROM delivery_block b WHERE b.id >> 20 = e.seq >> 8 AND b.open > 0 AND waits(b.content, e.seq)))`, topic)
}

// waits says whether a block holds a delivery that is not done: it begins with
// the bits of those that it holds, and then of those that are done.
func waits(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
	content, place := args[0].Blob(), args[1].Int64()%256
	if content[place/8]&^content[32+place/8]>>(place%8)&1 == 0 {
		return sqlite.IntegerValue(0), nil
	}
	return sqlite.IntegerValue(1), nil
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
