package postgres_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/commitlog/commitlogtest"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
	"github.com/switchboard-run/switchboard/store/sqlite"
	"github.com/switchboard-run/switchboard/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	commitlogtest.Exercise(t, func(t *testing.T) commitlog.Log {
		t.Helper()
		return cellOf(t, s.Database(), "cell")
	})
}

// storeDSN is set in the process that the suite of stores kills.
const storeDSN = "SWITCHBOARD_TEST_STORE_DSN"

// TestStore runs the suite of stores over PostgreSQL, on a new node at each reopening.
func TestStore(t *testing.T) {
	if os.Getenv("SWITCHBOARD_STORE_OVER_POSTGRES") == "" {
		t.Skip("takes 20 s: .ci/nightly runs it with SWITCHBOARD_STORE_OVER_POSTGRES=1")
	}
	dsn := os.Getenv(storeDSN)
	if dsn == "" {
		dsn = postgrestest.Start(t, "max_connections=200").Database()
		t.Setenv(storeDSN, dsn)
	}
	d := open(t, dsn, "suite")
	storetest.Exercise(t, func(t testing.TB, dir string) journal.Store {
		t.Helper()
		cell, err := d.Create(t.Context(), dir)
		if err != nil {
			cell, err = d.Cell(t.Context(), dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		node, err := os.MkdirTemp(dir, "node")
		if err != nil {
			t.Fatal(err)
		}
		tenure, err := cell.Acquire(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		s, _, err := sqlite.OpenOver(t.Context(), filepath.Join(node, "test.db"), cell, tenure, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return &released{Store: s, tenure: tenure}
	})
}

// released is a store that gives its tenure's connection back.
type released struct {
	journal.Store
	tenure commitlog.Tenure
}

func (r *released) Close() error {
	return errors.Join(r.Store.Close(), r.tenure.Release(context.Background()))
}
