package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
)

// go-plugin makes a directory for each process and a socket in it, both with a
// random number of up to ten digits.
const (
	socketDirPrefix = "plugin-dir"
	longestSocket   = "/" + socketDirPrefix + "0123456789/plugin0123456789"
)

// prepareRunDir makes dir usable for sockets: it exists, is private, short
// enough, and holds nothing of an earlier kernel, whose processes are ended if
// any are left.
func prepareRunDir(dir string, log hclog.Logger) (string, error) {
	if dir == "" {
		return "", errors.New("runtime directory: none is given")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("runtime directory: %w", err)
	}
	if n := len(dir) + len(longestSocket); n > maxSocketPath {
		return "", fmt.Errorf("runtime directory %s: socket paths in it would have %d bytes, and this system allows %d: "+
			"use a directory whose path has at most %d bytes (for example by setting TMPDIR or XDG_RUNTIME_DIR to a shorter one)",
			dir, n, maxSocketPath, maxSocketPath-len(longestSocket))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("runtime directory: %w", err)
	}
	if err := makePrivate(dir); err != nil {
		return "", fmt.Errorf("runtime directory %s: %w", dir, err)
	}
	left, err := filepath.Glob(filepath.Join(escapeGlob(dir), socketDirPrefix+"*"))
	if err != nil {
		return "", fmt.Errorf("runtime directory: %w", err)
	}
	if len(left) > 0 {
		endLeftovers(dir, log)
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			return "", fmt.Errorf("runtime directory: removing what an earlier kernel left: %w", err)
		}
	}
	return dir, nil
}

// makePrivate refuses a directory that others made or use.
func makePrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return errors.New("it is not a directory: remove it, or use another")
	case info.Mode()&os.ModeSticky != 0, ok && int(owner.Uid) != os.Geteuid():
		return errors.New("it belongs to others too: use a directory of your own")
	}
	return os.Chmod(dir, 0o700) //nolint:gosec // a directory needs the x
}

// endLeftovers kills processes of an earlier kernel that outlived it: children
// of extensions, or extensions where the system has no parent-death signal. They
// are known by the socket directory in their environment.
func endLeftovers(dir string, log hclog.Logger) {
	mark := plugin.EnvUnixSocketDir + "=" + filepath.Join(dir, socketDirPrefix)
	for pid, environ := range environments() {
		if pid != os.Getpid() && strings.Contains(environ, mark) {
			log.Warn("ending a process that an earlier kernel left behind", "pid", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
