package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// A database that was backed up by PostgreSQL's own means and restored on another server
// serves on: the node that had newer commits marks what they may have done, and a new one
// starts from it.
func TestPostgreSQLsOwnBackups(t *testing.T) {
	t.Parallel()
	for name, backUp := range map[string]func(t *testing.T, s *postgrestest.Server, dsn string) func() string{
		"pg_dump": func(t *testing.T, s *postgrestest.Server, dsn string) func() string {
			t.Helper()
			dump := s.Dump(postgrestest.Name(dsn))
			return func() string {
				other := postgrestest.Start(t)
				restored := other.Database()
				other.Load(postgrestest.Name(restored), dump)
				return restored
			}
		},
		"pg_basebackup": func(t *testing.T, s *postgrestest.Server, dsn string) func() string {
			t.Helper()
			other := s.Standby("backup")
			other.Promote() // it has what was committed until here
			return func() string { return other.DSN(postgrestest.Name(dsn)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := postgrestest.Start(t)
			dsn := server.Database()
			cell, err := openDatabase(t, dsn, "one").Create(t.Context(), "home")
			must(t, err)
			path := filepath.Join(t.TempDir(), "switchboard.db")
			tenure, err := cell.Acquire(t.Context(), "one")
			must(t, err)
			s, _, err := sqlite.OpenOver(t.Context(), path, cell, tenure, sqlite.Options{})
			must(t, err)
			sum := sha256.Sum256([]byte("file"))
			hash := hex.EncodeToString(sum[:])
			must(t, cell.PutBlob(t.Context(), hash, strings.NewReader("file")))
			put(t, s, "a", 100)
			_, err = s.Snapshot(t.Context(), cell, nil)
			must(t, err)
			put(t, s, "b", 100)
			restore := backUp(t, server, dsn)
			put(t, s, "c", 100)
			must(t, s.Close())
			server.Kill()

			restored, err := openDatabase(t, restore(), "one").Cell(t.Context(), "home")
			must(t, err)
			if tenure, err = restored.Acquire(t.Context(), "one"); err != nil {
				t.Fatal(err)
			}
			s, p, err := sqlite.OpenOver(t.Context(), path, restored, tenure, sqlite.Options{})
			must(t, err)
			if p.Lost == nil {
				t.Errorf("the node does not notice what is lost: %+v", p)
			}
			put(t, s, "d", 100)
			must(t, s.Close())
			other, _, p := own(t, restored, "two")
			if p.Lost != nil {
				t.Errorf("a new node has lost %+v", p.Lost)
			}
			must(t, stored(t.Context(), restored, hash))
			must(t, other.View(t.Context(), func(r journal.Reader) error {
				for key, want := range map[string]bool{"a": true, "b": true, "c": false, "d": true} {
					if v, err := r.KVGet("x", key); err != nil || v.Version > 0 != want {
						return fmt.Errorf("%s is there: %t, %w", key, v.Version > 0, err)
					}
				}
				return nil
			}))
		})
	}
}
