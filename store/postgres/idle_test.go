package postgres_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

// TestFiguresOfAnIdleTransaction measures what a transaction that is left open costs: the
// row of the cell is updated by each append, and its old versions stay while anyone may
// still see them. It needs SWITCHBOARD_IDLE_TRANSACTION, such as 10m.
func TestFiguresOfAnIdleTransaction(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("SWITCHBOARD_IDLE_TRANSACTION"))
	if err != nil {
		t.Skip("takes its time: set SWITCHBOARD_IDLE_TRANSACTION=10m")
	}
	server := postgrestest.Start(t)
	dsn := server.Database()
	w := acquire(t, cellOf(t, dsn, "one"), "one")
	figures := func(name string, length time.Duration) {
		t.Helper()
		var all []time.Duration
		for began := time.Now(); time.Since(began) < length; {
			sent := time.Now()
			mustAppend(t, w, strings.Repeat("x", 500))
			all = append(all, time.Since(sent))
		}
		recent := all[len(all)*9/10:] // the last tenth, when there is most to skip
		slices.Sort(recent)
		sizes := server.DoIn(postgrestest.Name(dsn), "SELECT pg_relation_size('switchboard.cell') / 1024, "+
			"pg_indexes_size('switchboard.cell') / 1024")
		t.Logf("%s: %d appends, %.0f/s; the last tenth: p50 %v, p99 %v; cell and its indexes: %s KiB", name, len(all),
			float64(len(all))/length.Seconds(), recent[len(recent)/2].Round(time.Microsecond),
			recent[len(recent)*99/100].Round(time.Microsecond), strings.ReplaceAll(fmt.Sprint(sizes), "|", ", "))
	}
	short := min(length, 10*time.Second)
	figures("before", short)
	idle, err := pgconn.Connect(t.Context(), dsn)
	if err == nil {
		_, err = idle.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT head FROM switchboard.cell").ReadAll()
	}
	if err != nil {
		t.Fatal(err)
	}
	figures("while a transaction is idle", length)
	if err := idle.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	figures("after it", short)
	server.DoIn(postgrestest.Name(dsn), "VACUUM switchboard.cell")
	figures("after a vacuum", short)
}
