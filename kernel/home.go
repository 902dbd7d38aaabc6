package kernel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/home/config"
)

// ErrRunning says that another kernel runs on the home.
var ErrRunning = errors.New("a kernel is already running on this home")

// ErrStopping says that the kernel which runs on the home is about to end.
var ErrStopping = fmt.Errorf("%w, which is being stopped", ErrRunning)

// ErrBusy says that a backup of the home is being made or restored.
var ErrBusy = errors.New("a backup of this home is being made or restored")

// What holds a home stands in its lock.
const (
	heldByKernel = "kernel"
	heldToStop   = "stopping" // by a kernel
	heldByBackup = "backup"
)

// lockHome makes sure that one kernel runs on a home, or that a backup of it is
// made or restored without one. The lock goes with the process.
func lockHome(home *config.Home, holder string) (*os.File, error) {
	path := filepath.Join(home.Path(), "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("taking the home %s: %w", home.Path(), err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		held, _ := io.ReadAll(io.LimitReader(f, 100))
		_ = f.Close()
		by, pid, _ := strings.Cut(strings.TrimSpace(string(held)), " ")
		switch {
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, fmt.Errorf("locking %s: %w", path, err)
		case by == heldByBackup:
			return nil, fmt.Errorf("%w (%s, pid %s): wait until that has ended", ErrBusy, home.Path(), pid)
		case by == heldToStop:
			return nil, fmt.Errorf("%w (%s, pid %s): wait until that has ended", ErrStopping, home.Path(), pid)
		}
		return nil, fmt.Errorf("%w (%s): talk to it with `switchboard chat`, or stop it first", ErrRunning, home.Path())
	}
	hold(f, holder)
	return f, nil
}

// hold notes who has a lock. That is only for who wants it too.
func hold(lock *os.File, holder string) {
	text := fmt.Appendf(nil, "%s %d\n", holder, os.Getpid())
	if n, err := lock.WriteAt(text, 0); err == nil {
		_ = lock.Truncate(int64(n))
	}
}

// listenPrivate listens on a socket that only this user can open, which the
// kernel's umask sees to from the first instant. That belongs to the whole process,
// and is not changed here: a directory that is made meanwhile, or an extension that
// is started, would have it too.
func listenPrivate(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the socket of an earlier kernel: %w", err)
	}
	listener, err := net.Listen("unix", path) //nolint:noctx // making a socket does not wait
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("listening on %s: %w", path, err), listener.Close())
	}
	return listener, nil
}

// isolateStdin keeps the terminal from extensions: go-plugin hands the kernel's
// stdin to every process that it starts.
func isolateStdin() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("opening %s: %w", os.DevNull, err)
	}
	os.Stdin = null
	return nil
}
