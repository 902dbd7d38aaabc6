package postgres_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/store/postgres"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

func refused(t *testing.T, dsn, why string) {
	t.Helper()
	d, err := postgres.Open(t.Context(), postgres.Options{DSN: dsn, Name: "one"})
	if err == nil {
		d.Close()
	}
	if !errors.Is(err, postgres.ErrUnfit) || !strings.Contains(err.Error(), why) {
		t.Fatalf("%v instead of a refusal: %s", err, why)
	}
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	refused(t, "host=db.example.com user=a sslmode=disable", "sslmode=verify-full")
	refused(t, "host=db.example.com user=a sslmode=prefer", "sslmode=verify-full")
	refused(t, "host=db.example.com user=a sslmode=require", "sslmode=verify-full")
	_, err := postgres.Open(t.Context(), postgres.Options{DSN: "postgres://a:hunter2@[::1/x?sslmode=never"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Fatalf("the error of a wrong connection string is %v", err)
	}

	server := postgrestest.Start(t)
	readOnly := server.Database()
	server.Do("ALTER DATABASE " + postgrestest.Name(readOnly) + " SET default_transaction_read_only = on")
	refused(t, readOnly, "read-only")
	for _, setting := range []string{"fsync", "full_page_writes"} {
		server.Do("ALTER SYSTEM SET " + setting + " = off")
		server.Do("SELECT pg_reload_conf()")
		await(t, "the setting is in force", func() bool { return server.Do("SHOW " + setting)[0] == "off" })
		refused(t, server.DSN("postgres"), setting+" is off")
		server.Do("ALTER SYSTEM RESET " + setting)
		server.Do("SELECT pg_reload_conf()")
		await(t, "the setting is in force", func() bool { return server.Do("SHOW " + setting)[0] == "on" })
	}

	// A pooler answers with the number of a backend of its own.
	p := postgrestest.NewProxy(t, server)
	p.Filter(func(toServer bool, b []byte) bool {
		if i := bytes.Index(b, []byte("K\x00\x00\x00\x0c")); !toServer && i >= 0 {
			b[i+5] ^= 1
		}
		return true
	})
	refused(t, p.DSN(server.Database()), "pooler")
}

// A real pooler, in transaction mode, is refused.
func TestPgbouncerIsRefused(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	dsn := server.Bouncer(postgrestest.Name(server.Database()))
	if dsn == "" {
		t.Skip("pgbouncer is not installed: install Debian's package pgbouncer")
	}
	await(t, "pgbouncer answers", func() bool {
		d, err := postgres.Open(t.Context(), postgres.Options{DSN: dsn, Name: "one"})
		if err == nil {
			d.Close()
			t.Fatal("it is used")
		}
		return errors.Is(err, postgres.ErrUnfit)
	})
	refused(t, dsn, "pooler")
}
