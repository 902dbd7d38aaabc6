package sqlite_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/kernel/journal"
	engine "github.com/switchboard-run/switchboard/store/sqlite"
)

// grow makes a store of n keys of 4 KB, and closes it.
func grow(t *testing.T, path string, keys int) {
	t.Helper()
	s, err := engine.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := journal.Do(t.Context(), s, func(tx journal.Tx) error {
		for i := range keys {
			if _, err := tx.KVPut("test", string(rune('0'+i)), make([]byte, 4000)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func copyOf(t *testing.T, from, to string) {
	t.Helper()
	if err := os.WriteFile(to, []byte(read(t, from)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTheFilesBelongTogether puts files together that do not belong to each
// other. SQLite would take them, and destroy the store.
func TestTheFilesBelongTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mix  func(t *testing.T, path, other string)
		want string
	}{
		"the log of a smaller store": {func(t *testing.T, path, other string) {
			grow(t, path, 300)
			killed(t, other)
			copyOf(t, other+"-wal", path+"-wal")
		}, "does not belong to it"},
		"the log of a larger store": {func(t *testing.T, path, other string) {
			grow(t, path, 1)
			grow(t, other, 300)
			killed(t, other)
			copyOf(t, other+"-wal", path+"-wal")
		}, "does not belong to it"},
		"an older copy, as large, beside a new log": {func(t *testing.T, path, other string) {
			grow(t, path, 60)
			copyOf(t, path, other)
			for range 3 {
				grow(t, path, 60)
			}
			killed(t, path)
			copyOf(t, other, path)
		}, "does not belong to it"},
		"a newer store beside an old log": {func(t *testing.T, path, other string) {
			grow(t, path, 60)
			killed(t, path)
			copyOf(t, path+"-wal", other)
			for range 3 {
				grow(t, path, 60)
			}
			copyOf(t, other, path+"-wal")
		}, "does not belong to it"},
		"a store that lost its end, which its log has not": {func(t *testing.T, path, _ string) {
			grow(t, path, 300)
			killed(t, path)
			edit(t, path, func(b []byte) []byte { return b[:100<<10] })
		}, "the store lacks a part"},
		"a log that is gone": {func(t *testing.T, path, other string) {
			s, err := engine.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := put(t.Context(), s, "k", nil); err != nil {
				t.Fatal(err)
			}
			copyOf(t, path, other)
			copyOf(t, path+"-shm", other+"-shm")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			copyOf(t, other, path)
			copyOf(t, other+"-shm", path+"-shm")
		}, "is gone, with accepted changes in it"},
		"the database of another program": {func(t *testing.T, path, _ string) { foreign(t, path, 0) },
			"not one of Switchboard"},
		"one that has a version, too": {func(t *testing.T, path, _ string) { foreign(t, path, 2) },
			"not one of Switchboard"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "test.db")
			c.mix(t, path, filepath.Join(t.TempDir(), "test.db"))
			before := files(t, filepath.Dir(path))
			_, openErr := engine.Open(path)
			for attempt, err := range map[string]error{"checking": engine.Check(path), "opening": openErr} {
				if !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v, want ErrDamaged, %q", attempt, err, c.want)
				}
			}
			if after := files(t, filepath.Dir(path)); !maps.Equal(before, after) {
				t.Error("the files have changed")
			}
		})
	}
}

func foreign(t *testing.T, path string, version int) {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	script := "CREATE TABLE photo (name TEXT); PRAGMA user_version=" + string(rune('0'+version))
	if err := errors.Join(sqlitex.ExecuteScript(conn, script, nil), conn.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDirectoriesInTheWay names what stands where a file of the store belongs.
func TestDirectoriesInTheWay(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		path := filepath.Join(t.TempDir(), "test.db")
		if suffix != "" {
			grow(t, path, 1)
		}
		if err := os.Mkdir(path+suffix, 0o700); err != nil {
			t.Fatal(err)
		}
		_, openErr := engine.Open(path)
		for attempt, err := range map[string]error{"checking": engine.Check(path), "opening": openErr} {
			if err == nil || !strings.Contains(err.Error(), path+suffix+" is not a regular file: move it away") {
				t.Errorf("%s, a directory %s: %v", attempt, suffix, err)
			}
		}
	}
}

// TestTheFilesOfAStoreAtWork takes copies of both files between commits, as
// checkpoints go on, pages become free, and the store grows past what its log
// holds: they belong together at each moment.
func TestTheFilesOfAStoreAtWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "test.db")
	for run := range 3 {
		s, err := engine.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			if err := journal.Do(t.Context(), s, func(tx journal.Tx) error {
				for j := range 20 {
					key := string(rune('0' + (run*31+i*7+j*13)%200))
					if (i+j)%3 == 0 {
						if err := tx.KVDelete("test", key); err != nil {
							return err
						}
						continue
					}
					if _, err := tx.KVPut("test", key, make([]byte, 100+(i*j*97)%20_000)); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			other := filepath.Join(dir, "copy")
			copyOf(t, path, other)
			copyOf(t, path+"-wal", other+"-wal")
			if err := engine.Check(other); err != nil {
				t.Fatalf("run %d, commit %d: %v", run, i, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
