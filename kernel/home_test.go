package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
		hold(held, heldToStop)
		if _, err := lockHome(home, heldByKernel); !errors.Is(err, ErrStopping) {
			t.Errorf("a %s that is being stopped: %v", holder, err)
		}
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestListeningLeavesOthersAlone: the umask belongs to the process, and what
// others make at the same time needs its own modes.
func TestListeningLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stop := make(chan struct{})
	var beside sync.WaitGroup
	defer beside.Wait()
	defer close(stop)
	beside.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			made := filepath.Join(dir, fmt.Sprint("made", n))
			if err := os.Mkdir(made, 0o700); err != nil {
				t.Error(err)
				return
			}
			if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("a directory has the mode %s, %v", info.Mode(), err)
				return
			}
		}
	})
	path := filepath.Join(dir, "s")
	for range 1000 {
		l, err := listenPrivate(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the socket has the mode %s, %v", info.Mode(), err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
