package postgres_test

import (
	"errors"
	"testing"

	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/postgres"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

// What a node reports as lost stays until a later owner has logged doubts.
func TestLostCommitsAreReported(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.Start(t).Database()
	l := cellOf(t, dsn, "a")
	lost := func() int64 {
		t.Helper()
		at, err := l.Lost(t.Context())
		v, err2 := open(t, dsn, "b").Look(t.Context())
		if err = errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if at == nil {
			if v.Cells[0].Lost != 0 {
				t.Errorf("a look shows epoch %d", v.Cells[0].Lost)
			}
			return 0
		}
		if v.Cells[0].Lost != 1 {
			t.Errorf("a look shows epoch %d", v.Cells[0].Lost)
		}
		return at.Head
	}
	first := acquire(t, l, "a")
	for _, head := range []int64{7, 9, 8} {
		if err := l.ReportLost(t.Context(), commitlog.Position{Head: head}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Doubted(t.Context(), first); err != nil || lost() != 9 {
		t.Errorf("after doubts of an owner that was there before: %d, %v", lost(), err)
	}
	if err := l.Doubted(t.Context(), acquire(t, l, "b")); err != nil || lost() != 0 {
		t.Errorf("after doubts of the next owner: %d, %v", lost(), err)
	}
}

// A cell that a home moves its state into is left alone meanwhile.
func TestAReservedCell(t *testing.T) {
	t.Parallel()
	d := open(t, postgrestest.Start(t).Database(), "a")
	l, err := d.Reserve(t.Context(), "flat", "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := d.Reserved(t.Context(), "flat", "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Head(t.Context()); !errors.Is(err, postgres.ErrReserved) {
		t.Errorf("another node reads it: %v", err)
	}
	if tenure, err := other.Acquire(t.Context(), "b"); err == nil {
		t.Errorf("another node takes it: %+v", tenure.State())
	}
	w := acquire(t, l, "a")
	if err := w.append("state"); err != nil {
		t.Fatal(err)
	}
	if err := l.Admit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Reserve(t.Context(), "flat", "b"); err != nil {
		t.Fatal(err)
	}
	v, err := d.Look(t.Context())
	if err != nil || v.Cells[0].Ended != "" || v.Cells[0].Wanted != "a" {
		t.Errorf("a cell with a state is %+v, %v", v.Cells[0], err)
	}
	acquire(t, other, "b")
}
