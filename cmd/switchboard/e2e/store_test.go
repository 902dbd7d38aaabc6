package e2e

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	store "github.com/switchboard-run/switchboard/store/sqlite"
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

// change changes the store of a kernel that does not run.
func (w *world) change(sql string) {
	w.t.Helper()
	conn, err := sqlite.OpenConn(w.file("switchboard.db"), sqlite.OpenReadWrite)
	if err == nil {
		err = errors.Join(sqlitex.ExecuteTransient(conn, sql, nil), conn.Close())
	}
	if err != nil {
		w.t.Fatalf("changing the store: %v", err)
	}
}

// unsettled visits each unsettled delivery.
func (w *world) unsettled(each func(journal.Subscription, journal.Delivery, *busv1.Event)) {
	w.t.Helper()
	if err := store.Unsettled(w.file("switchboard.db"), each); err != nil {
		w.t.Fatalf("reading the store: %v", err)
	}
}

// pending describes the unsettled deliveries.
func (w *world) pending() (left []string) {
	w.t.Helper()
	w.unsettled(func(s journal.Subscription, d journal.Delivery, e *busv1.Event) {
		if s.ParkedAt == 0 {
			left = append(left, fmt.Sprintf("%s: %s %s is %s, attempts: %d %s", s.Extension, e.GetTopic(), e.GetId(), d.State,
				d.Attempts, d.Reason))
		}
	})
	return left
}

// waiting are the payloads of the events of a topic with a delivery that no
// handler has and that is not settled.
func (w *world) waiting(topic string) (payloads []string) {
	w.t.Helper()
	w.unsettled(func(_ journal.Subscription, d journal.Delivery, e *busv1.Event) {
		if e.GetTopic() == topic && d.State == journal.Pending {
			payloads = append(payloads, string(e.GetPayload()))
		}
	})
	return payloads
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
