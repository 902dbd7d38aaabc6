package home

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// ErrRunning means that another kernel runs on the home.
var ErrRunning = errors.New("a kernel is already running on this home")

// ErrStopping means that the kernel on the home is shutting down.
var ErrStopping = fmt.Errorf("%w, and is shutting down", ErrRunning)

// ErrBusy means that a backup of the home is being made or restored.
var ErrBusy = errors.New("a backup of this home is being made or restored")

// ErrMoving means that the home is joining or leaving a cluster in another process.
var ErrMoving = errors.New("this home is joining or leaving a cluster")

// ErrJoining means that the home began to join a cluster and has not finished.
var ErrJoining = errors.New("this home is joining a cluster")

// Holders of the lock of a home, written into its file.
const (
	heldByKernel = "kernel"
	heldToStop   = "stopping" // a kernel that shuts down
	heldByBackup = "backup"
	heldToMove   = "cluster" // while it joins a cluster, or leaves it
)

// lockHome locks the home for a kernel, or for a backup without a kernel. The lock
// ends with the process.
func lockHome(home *config.Home, holder string) (*os.File, error) {
	f, err := lockFile(home, holder)
	if err == nil && errors.Is(sqlite.Free(home.Database()), journal.ErrFenced) { // the lock was deleted
		_ = f.Close()
		return nil, fmt.Errorf("%w (%s): talk to it with `switchboard chat`, or stop it first", ErrRunning, home.Path())
	}
	return f, err
}

// lockFile is lockHome where this process may have the store open itself.
func lockFile(home *config.Home, holder string) (*os.File, error) {
	path := filepath.Join(home.Path(), "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		held, _ := io.ReadAll(io.LimitReader(f, 100))
		_ = f.Close()
		by, pid, _ := strings.Cut(strings.TrimSpace(string(held)), " ")
		switch {
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, fmt.Errorf("lock %s: %w", path, err)
		case by == heldByBackup:
			return nil, fmt.Errorf("%w (%s, pid %s): wait until it has finished", ErrBusy, home.Path(), pid)
		case by == heldToMove:
			return nil, fmt.Errorf("%w (%s, pid %s): wait until it has finished", ErrMoving, home.Path(), pid)
		case by == heldToStop:
			return nil, fmt.Errorf("%w (%s, pid %s): wait until it has finished", ErrStopping, home.Path(), pid)
		}
		return nil, fmt.Errorf("%w (%s): talk to it with `switchboard chat`, or stop it first", ErrRunning, home.Path())
	}
	recordHolder(f, holder)
	return f, nil
}

// recordHolder writes the holder into the lock file, for the errors of others.
func recordHolder(lock *os.File, holder string) {
	text := fmt.Appendf(nil, "%s %d\n", holder, os.Getpid())
	if n, err := lock.WriteAt(text, 0); err == nil {
		_ = lock.Truncate(int64(n))
	}
}

// isolateStdin keeps extensions away from the terminal: go-plugin passes the
// kernel's stdin to every process that it starts.
func isolateStdin() error { return stdinIsolated() }

// Several installations of one program share its stdin.
var stdinIsolated = sync.OnceValue(func() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	os.Stdin = null
	return nil
})
