package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/hashicorp/go-plugin"
)

// go-plugin makes a directory for each process and a socket in it, both with a
// random number of up to ten digits.
const (
	socketDirPrefix = "plugin-dir"
	longestSocket   = "/" + socketDirPrefix + "0123456789/plugin0123456789"
)

// prepareRunDir makes the directory usable for sockets: it exists, is private and short
// enough, and holds no sockets of an earlier kernel, whose processes are killed. It
// returns the absolute path.
func prepareRunDir(o Options) (string, error) {
	dir := o.RunDir
	if dir == "" {
		return "", errors.New("no runtime directory is given")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("runtime directory: %w", err)
	}
	if n := len(dir) + len(longestSocket); n > maxSocketPath {
		return "", fmt.Errorf("runtime directory %s: socket paths in it would have %d bytes, and this system allows %d: "+
			"use a directory whose path has at most %d bytes (for example, set TMPDIR or XDG_RUNTIME_DIR to a shorter one)",
			dir, n, maxSocketPath, maxSocketPath-len(longestSocket))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("runtime directory: %w", err)
	}
	if err := makePrivate(dir); err != nil {
		return "", fmt.Errorf("runtime directory %s: %w", dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("runtime directory: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), socketDirPrefix) })
	if len(entries) > 0 {
		endLeftovers(o, dir)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return "", fmt.Errorf("runtime directory: remove the sockets of an earlier kernel: %w", err)
		}
	}
	return dir, nil
}

// makePrivate refuses a directory that other users own or can use.
func makePrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return errors.New("not a directory: remove it, or use another")
	case info.Mode()&os.ModeSticky != 0, ok && int(owner.Uid) != os.Geteuid():
		return errors.New("other users can use it: choose a directory of your own")
	}
	return os.Chmod(dir, 0o700) //nolint:gosec // a directory needs the x
}

// endLeftovers kills processes of an earlier kernel that outlived it: children
// of extensions, or extensions where the system has no parent-death signal. They
// are known by the socket directory in their environment.
func endLeftovers(o Options, dir string) {
	mark := plugin.EnvUnixSocketDir + "=" + filepath.Join(dir, socketDirPrefix)
	if killed := o.Processes.KillMarked(mark); len(killed) > 0 {
		o.Log.Warn("ended processes that an earlier kernel left behind", "pids", killed)
	}
}
