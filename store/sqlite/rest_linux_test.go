package sqlite_test

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// TestStoreAtRestGivesItsPagesBack: what has been given back is read again from
// the file, and it is the same. What the process reads is counted by the system:
// nothing else may run beside it.
func TestStoreAtRestGivesItsPagesBack(t *testing.T) { //nolint:paralleltest // likewise
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer func() { _ = s.Close() }()
		const keys, size = 1000, 100 // far less than the pages that are kept
		for i := range keys {
			if err := put(t.Context(), s, fmt.Sprintf("%04d", i), make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}
		reads := func() (n int64) { // of the file, in bytes
			before := readSoFar(t)
			if err := s.View(t.Context(), func(r journal.Reader) error {
				all, err := r.KVScan("x", "", "", 2*keys)
				if len(all) != keys {
					t.Errorf("there are %d keys, of %d", len(all), keys)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return readSoFar(t) - before
		}
		warm := func() {
			reads() // with one connection
			reads() // with the other one
			if n := reads(); n > keys*size/2 {
				t.Errorf("what was just read is read again: %d bytes", n)
			}
		}
		warm()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := reads(); n < keys*size {
			t.Errorf("after a rest %d bytes are read, of %d", n, keys*size)
		}
		warm()
	})
}

// readSoFar is how many bytes this process has read.
func readSoFar(t *testing.T) (n int64) {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip(err)
	}
	if _, err := fmt.Sscanf(string(raw), "rchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}
