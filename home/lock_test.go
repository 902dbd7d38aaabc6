package home

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/home/config"
)

// TestWhoHoldsAHome tells a kernel from one that is being stopped and from a backup.
func TestWhoHoldsAHome(t *testing.T) {
	t.Parallel()
	home, err := config.OpenHomeAt(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	for holder, want := range map[string]error{heldByKernel: ErrRunning, heldToStop: ErrStopping, heldByBackup: ErrBusy} {
		held, err := lockHome(home, holder)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{heldByKernel, heldByBackup} {
			if _, err := lockHome(home, other); !errors.Is(err, want) || errors.Is(err, ErrStopping) != (want == ErrStopping) || !strings.Contains(err.Error(), home.Path()) { //nolint:errorlint // want is one of three
				t.Errorf("a %s, while a %s holds the home: %v, want %v", other, holder, err, want)
			}
		}
		recordHolder(held, heldToStop)
		if _, err := lockHome(home, heldByKernel); !errors.Is(err, ErrStopping) {
			t.Errorf("a %s that is being stopped: %v", holder, err)
		}
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
