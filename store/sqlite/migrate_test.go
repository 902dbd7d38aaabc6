package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// TestMigration has a program of the future open a store that a program of today
// has left. It changes the list of migrations, so it cannot run beside others.
func TestMigration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	unpackReleased(t, len(migrations), path)

	today := migrations
	t.Cleanup(func() { migrations = today })
	good := []string{"ALTER TABLE kv ADD COLUMN future INTEGER NOT NULL DEFAULT 7;",
		"CREATE TABLE later (id INTEGER PRIMARY KEY);"}
	migrations = append(slices.Clone(today), good[0], "CREATE TABLE half (x); CREATE TABLE kv (x);")
	if _, err := Open(path); err == nil {
		t.Fatal("a migration that fails was taken for a success")
	}
	backup := fmt.Sprintf("%s.v%d.backup", path, len(today))
	if got := value(t, today, backup); got != "kept" {
		t.Errorf("the backup that was made before migrating has %q", got)
	}

	// The one that worked stays; the one that failed left nothing.
	migrations = append(slices.Clone(today), good...)
	if got := value(t, migrations, path); got != "kept" {
		t.Errorf("after migrating the store has %q", got)
	}
	if _, err := os.Stat(fmt.Sprintf("%s.v%d.backup", path, len(today)+1)); err != nil {
		t.Errorf("there is no backup of the version in between: %v", err)
	}
	if got := value(t, migrations, path); got != "kept" {
		t.Errorf("opened once more, the store has %q", got)
	}
	migrations = today
	if _, err := Open(path); !errors.Is(err, journal.ErrNewer) {
		t.Errorf("today's program opens the migrated store: %v", err)
	}
	// The way back: the backup in the place of the store.
	must(t, os.Rename(backup, path))
	if got := value(t, today, path); got != "kept" {
		t.Errorf("the restored backup has %q", got)
	}
}

// value opens the store as a program with these migrations would.
func value(t *testing.T, known []string, path string) string {
	t.Helper()
	before := migrations
	migrations = known
	defer func() { migrations = before }()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var v journal.KV
	must(t, s.View(context.Background(), func(r journal.Reader) (err error) {
		v, err = r.KVGet("memory", "fact/1")
		return err
	}))
	must(t, s.Close())
	return string(v.Value)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
