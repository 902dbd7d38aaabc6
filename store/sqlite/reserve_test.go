package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/journal"
	engine "github.com/switchboard-run/switchboard/store/sqlite"
)

// TestLogGrowsAhead: what a crash leaves behind at any time is a store with
// everything that was accepted, although the log ends in what nobody has
// written.
func TestLogGrowsAhead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	s, err := engine.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	const enough = 4 << 20
	size := int64(0)
	for i := 0; size < enough; i++ {
		if i == 2000 {
			t.Fatalf("after %d updates the log has %d bytes", i, size)
		}
		if err := put(t.Context(), s, fmt.Sprint(i), []byte("v")); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		if size = info.Size(); i%8 == 0 || size >= enough {
			holds(t, snapshot(t, path), i+1)
		}
	}
}

// snapshot copies a store as it lies on the disk.
func snapshot(t *testing.T, path string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "b.db")
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied+suffix, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return copied
}

// holds checks that a store has the first keys that put wrote.
func holds(t *testing.T, path string, keys int) {
	t.Helper()
	if err := engine.Check(path); err != nil {
		t.Fatalf("after %d updates: %v", keys, err)
	}
	s, err := engine.Open(path)
	if err != nil {
		t.Fatalf("after %d updates: %v", keys, err)
	}
	defer func() { _ = s.Close() }()
	if err := put(t.Context(), s, "afterwards", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.View(t.Context(), func(r journal.Reader) error {
		for i := range keys {
			if kv, err := r.KVGet("x", fmt.Sprint(i)); err != nil || string(kv.Value) != "v" {
				t.Errorf("after %d updates, key %d is %+v (%v)", keys, i, kv, err)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
