package home

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// ErrRunning says that another kernel runs on the home.
var ErrRunning = errors.New("a kernel is already running on this home")

// ErrStopping says that the kernel that runs on the home is shutting down.
var ErrStopping = fmt.Errorf("%w, which is being stopped", ErrRunning)

// ErrBusy says that a backup of the home is being made or restored.
var ErrBusy = errors.New("a backup of this home is being made or restored")

// The lock of a home says what holds it.
const (
	heldByKernel = "kernel"
	heldToStop   = "stopping" // by a kernel
	heldByBackup = "backup"
)

// lockHome takes the home for one kernel, or for a backup without a kernel. The
// lock ends with the process.
func lockHome(home *config.Home, holder string) (*os.File, error) {
	path := filepath.Join(home.Path(), "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("take the home %s: %w", home.Path(), err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		held, _ := io.ReadAll(io.LimitReader(f, 100))
		_ = f.Close()
		by, pid, _ := strings.Cut(strings.TrimSpace(string(held)), " ")
		switch {
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, fmt.Errorf("lock %s: %w", path, err)
		case by == heldByBackup:
			return nil, fmt.Errorf("%w (%s, pid %s): wait until that has ended", ErrBusy, home.Path(), pid)
		case by == heldToStop:
			return nil, fmt.Errorf("%w (%s, pid %s): wait until that has ended", ErrStopping, home.Path(), pid)
		}
		return nil, fmt.Errorf("%w (%s): talk to it with `switchboard chat`, or stop it first", ErrRunning, home.Path())
	}
	if err := sqlite.Free(home.Database()); errors.Is(err, journal.ErrFenced) { // the lock was deleted
		_ = f.Close()
		return nil, fmt.Errorf("%w (%s): talk to it with `switchboard chat`, or stop it first", ErrRunning, home.Path())
	}
	hold(f, holder)
	return f, nil
}

// hold notes in a lock what holds it, for the errors of others that want it.
func hold(lock *os.File, holder string) {
	text := fmt.Appendf(nil, "%s %d\n", holder, os.Getpid())
	if n, err := lock.WriteAt(text, 0); err == nil {
		_ = lock.Truncate(int64(n))
	}
}

// isolateStdin keeps the terminal from extensions: go-plugin hands the kernel's
// stdin to every process that it starts.
func isolateStdin() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	os.Stdin = null
	return nil
}
