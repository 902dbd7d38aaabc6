package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A home has one kernel, also when its lock file was deleted.
func TestSecondKernelIsRefusedWithoutTheLockFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.must("backup", "create")
	backups, _ := filepath.Glob(w.file("backups", "*.gz"))
	if err := os.Remove(w.file("lock")); err != nil || len(backups) != 1 {
		t.Fatal(err, backups)
	}
	for _, args := range [][]string{{"run"}, {"backup", "restore", backups[0]}} {
		_, complaints, code := w.cli(args...)
		if code != 1 {
			t.Errorf("%s: exit status %d", args, code)
		}
		contains(t, "stderr", complaints, "already running on this home")
	}
	w.works()
}

func TestStoreThatIsMovedAwayIsNoticed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	db := w.file("switchboard.db")
	if err := os.Rename(db, db+".away"); err != nil {
		t.Fatal(err)
	}
	w.eventually("status and doctor name the store", func() bool {
		status, _, _ := w.cli("status")
		doctor, _, code := w.cli("doctor")
		return strings.Contains(status, "was moved or deleted") && strings.Contains(doctor, "was moved or deleted") &&
			code != 0
	})
	if err := os.Rename(db+".away", db); err != nil {
		t.Fatal(err)
	}
	w.eventually("the store is in order again", func() bool {
		status, _, _ := w.cli("status")
		return !strings.Contains(status, "was moved or deleted")
	})
	w.works()
}
