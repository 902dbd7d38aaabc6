package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/powercut"
	engine "github.com/switchboard-run/switchboard/store/sqlite"
	"github.com/switchboard-run/switchboard/store/storetest"
)

func watch(t testing.TB, dir string) storetest.Disk {
	t.Helper()
	return powercut.Watch(t, dir)
}

// checked opens a store that has to be whole; nil if it is not.
func checked(t testing.TB, dir string) journal.Store {
	t.Helper()
	path := filepath.Join(dir, "test.db")
	if err := engine.Check(path); err != nil {
		t.Log(err)
		return nil
	}
	s, err := engine.Open(path)
	if err != nil {
		t.Log(err)
		return nil
	}
	return s
}

// TestPowerLoss cuts the power at random points of what SQLite writes.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	cuts := 40
	if testing.Short() {
		cuts = 10
	}
	for _, wrong := range storetest.PowerLoss(t, checked, watch, cuts) {
		t.Error(wrong)
	}
}

// TestLyingDisk makes sure that TestPowerLoss would notice: on a disk that does
// not sync, reported updates are lost.
func TestLyingDisk(t *testing.T) {
	t.Parallel()
	lying := func(t testing.TB, dir string) storetest.Disk {
		t.Helper()
		d := powercut.Watch(t, dir)
		d.IgnoreSyncs()
		return d
	}
	if wrong := storetest.PowerLoss(t, checked, lying, 20); len(wrong) == 0 {
		t.Error("nothing was lost on a disk that does not sync")
	}
}
