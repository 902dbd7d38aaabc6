package sqlite_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
	"github.com/switchboard-run/switchboard/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, open)
}

func open(t testing.TB, dir string) journal.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(dir, "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func FuzzStore(f *testing.F) {
	for _, seed := range []string{"", "0123456789abcdef",
		"\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x00\x00\x00\x00\x00\x00\x02"} {
		f.Add([]byte(seed))
	}
	storetest.Fuzz(f, open)
}
