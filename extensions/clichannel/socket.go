package clichannel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// maxSocketPath is the longest path that every system supports (macOS: 104 bytes
// with the trailing zero).
const maxSocketPath = 103

// listen opens the chat socket in dir, which must be private to the user. It
// replaces a socket of an earlier process.
func listen(dir string) (*net.UnixListener, error) {
	if dir == "" {
		return nil, fmt.Errorf("the kernel named no run directory, and %s is not set", wire.RunDirVariable)
	}
	path := filepath.Join(dir, wire.SocketName)
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("open chat socket %s: the path has %d bytes, the limit is %d: use a shorter run directory",
			path, len(path), maxSocketPath)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("check chat socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("open chat socket: %s exists and is not a socket: remove it", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("replace chat socket: %w", err)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open chat socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("make chat socket private: %w", err), l.Close())
	}
	return l, nil
}

// private returns an error for a directory that other users can access.
func private(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("check run directory: %w", err)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return fmt.Errorf("run directory %s is open to other users (mode %04o): run chmod 700 on it", dir, perm)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("run directory %s belongs to user %d: you must own it", dir, st.Uid)
	}
	return nil
}

// pauseAfterFailedAccept keeps Accept from spinning when descriptors run out.
func pauseAfterFailedAccept(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(100 * time.Millisecond):
		return true
	}
}
