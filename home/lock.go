package home

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

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

// lockHome locks the home for a kernel, or for a backup without a kernel. The lock ends with
// the process. If its holder was killed while it started another process, that one keeps the
// lock until it executes its program; lockHome waits for that, up to passedOn.
func lockHome(home *config.Home, holder string) (*os.File, error) {
	f, err := lockFile(home, holder)
	free := func() bool { return !errors.Is(sqlite.Free(home.Database()), journal.ErrFenced) }
	if err == nil && !await(free, lockEvery) {
		_ = f.Close() // the lock was deleted
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
	await(func() bool {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		return !errors.Is(err, unix.EWOULDBLOCK) || !ended(f)
	}, passedOn)
	if err != nil {
		by, pid := holderOf(f)
		_ = f.Close()
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

const (
	lockEvery = 10 * time.Millisecond // how often a lock is tried
	passedOn  = 3 * time.Second       // how long a lock of a process that has ended is tried
)

// await calls done until it returns true, and returns false if that takes longer than within.
func await(done func() bool, within time.Duration) bool {
	for end := time.Now().Add(within); !done(); time.Sleep(lockEvery) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// ended reports whether the holder of a lock has ended.
func ended(lock *os.File) bool {
	_, pid := holderOf(lock)
	n, err := strconv.Atoi(pid)
	return err == nil && n > 0 && errors.Is(unix.Kill(n, 0), unix.ESRCH)
}

func holderOf(lock *os.File) (by, pid string) {
	held, _ := io.ReadAll(io.NewSectionReader(lock, 0, 100))
	by, pid, _ = strings.Cut(strings.TrimSpace(string(held)), " ")
	return by, pid
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
