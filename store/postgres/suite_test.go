package postgres_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/commitlog/commitlogtest"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	commitlogtest.Exercise(t, func(t *testing.T) commitlog.Log {
		t.Helper()
		return cellOf(t, s.Database(), "cell")
	})
}
