package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog/commitlogtest"
	"github.com/switchboard-run/switchboard/store/sqlite"
	"github.com/switchboard-run/switchboard/store/storetest"
)

// overLog opens a store over a log in the directory, each time on a new node.
func overLog(t testing.TB, dir string, faulty func() commitlogtest.Fault) journal.Store {
	t.Helper()
	log := commitlogtest.Open(t, filepath.Join(dir, "log"))
	log.Faulty = faulty
	node, err := os.MkdirTemp(dir, "node")
	if err != nil {
		t.Fatal(err)
	}
	tenure, err := log.Acquire(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := sqlite.OpenOver(t.Context(), filepath.Join(node, "test.db"), log, tenure, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestConformanceOverALog runs the suite with nothing on the disk at each reopening but
// what the log leads to.
func TestConformanceOverALog(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, func(t testing.TB, dir string) journal.Store {
		t.Helper()
		return overLog(t, dir, nil)
	})
}

// TestConformanceWithLostAnswers runs it while answers and calls are lost.
func TestConformanceWithLostAnswers(t *testing.T) {
	t.Parallel()
	var n, lost atomic.Int64
	storetest.Exercise(t, func(t testing.TB, dir string) journal.Store {
		t.Helper()
		return overLog(t, dir, func() commitlogtest.Fault {
			switch n.Add(1) % 17 {
			case 5:
				lost.Add(1)
				return commitlogtest.LostAnswer
			case 11:
				return commitlogtest.LostCall
			}
			return commitlogtest.None
		})
	})
	t.Cleanup(func() {
		if lost.Load() == 0 && os.Getenv("JOURNALTEST_VICTIM") == "" {
			t.Error("no answer was lost")
		}
		t.Log(fmt.Sprint(lost.Load(), " answers were lost"))
	})
}
