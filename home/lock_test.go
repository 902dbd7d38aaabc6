package home

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// A kernel that was killed while it started an extension holds up the next one only until
// that extension's program runs.
func TestALockThatADeadKernelLeftIsWaitedFor(t *testing.T) {
	t.Parallel()
	home, err := config.OpenHomeAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dead := exec.CommandContext(t.Context(), "true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	lock, err := lockHome(home, heldByKernel)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.WriteAt(fmt.Appendf(nil, "kernel %d\n", dead.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	starting := exec.CommandContext(t.Context(), "cat")
	starting.ExtraFiles = []*os.File{lock}
	end, err := starting.StdinPipe()
	if err == nil {
		err = starting.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = lock.Close()
	locked := make(chan error)
	go func() {
		next, err := lockHome(home, heldByKernel)
		if err == nil {
			err = next.Close()
		}
		locked <- err
	}()
	_ = end.Close()
	if err := starting.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := <-locked; err != nil {
		t.Error(err)
	}
}
