package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/journal"
	engine "github.com/switchboard-run/switchboard/store/sqlite"
)

// TestCompact makes a store smaller most of which is free, and leaves others as
// they are.
func TestCompact(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	grow(t, path, 1000)
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	full := size()
	if err := engine.Compact(path); err != nil || size() != full {
		t.Errorf("a full one of %d bytes has %d afterwards (%v)", full, size(), err)
	}
	s, err := engine.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := journal.Do(t.Context(), s, func(tx journal.Tx) error {
		for i := range 900 {
			if err := tx.KVDelete("test", string(rune('0'+i))); err != nil {
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
	if err := engine.Compact(path); err != nil || size() > full/4 {
		t.Errorf("it has %d bytes of %d (%v)", size(), full, err)
	}
	if c, err := engine.Examine(t.Context(), path); err != nil || c.Keys["test/"+string(rune('0'+950))] != 1 {
		t.Errorf("it has %+v (%v)", c, err)
	}
}
