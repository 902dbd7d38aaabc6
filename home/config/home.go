package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Names of the variables that say where the home is.
const (
	HomeEnv = "SWITCHBOARD_HOME"
	xdgEnv  = "XDG_DATA_HOME"
)

const (
	// maxSocket is the length that the path of a unix socket stays under; macOS
	// takes 104 bytes, its end included.
	maxSocket = 100
	// socketRoom is kept for what stands behind the runtime directory in the
	// path of a socket: /plugin-dir1234567890/plugin1234567890.
	socketRoom = 40
)

// Home is the directory that holds all state of one kernel.
type Home struct {
	path    string
	runtime string
}

// OpenHome finds the home, creates it and its parts if need be, and makes sure
// that no other user can look into it. The environment is asked for
// $SWITCHBOARD_HOME first, then the system's directory for such data is used.
func OpenHome(env func(string) (string, bool)) (*Home, error) {
	path, err := HomePath(env)
	if err != nil {
		return nil, err
	}
	return OpenHomeAt(path)
}

// OpenHomeAt is OpenHome for a known directory.
func OpenHomeAt(path string) (*Home, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the home %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create the home %s: %w; set %s to a directory that can be written", path, err, HomeEnv)
	}
	// The one name of the home, however it was reached: the runtime directory
	// must be the same for all who open it.
	if err := private(path); err != nil {
		return nil, fmt.Errorf("open the home: %w; set %s to another directory", err, HomeEnv)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, fmt.Errorf("open the home: %w", err)
	}
	h := &Home{path: path}
	if err := h.Writable(); err != nil {
		return nil, err
	}
	if err := private(h.Extensions()); err != nil {
		return nil, fmt.Errorf("open the directory of extensions: %w", err)
	}
	if h.runtime, err = runtimeDir(path, "/tmp", os.TempDir()); err != nil {
		return nil, err
	}
	return h, nil
}

// FindHome is the home as it is, for who only looks at it: nothing is created or
// changed, and what it names need not exist. A directory of others is refused.
func FindHome(env func(string) (string, bool)) (*Home, error) {
	path, err := HomePath(env)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fmt.Errorf("find the home: %w", err)
	}
	resolved, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("open the home: %w", err)
	default:
		path = resolved
		info, err := os.Stat(path)
		if err == nil {
			err = owned(path, info)
		}
		if err != nil {
			return nil, fmt.Errorf("open the home: %w; set %s to another directory", err, HomeEnv)
		}
	}
	dir, err := findRuntimeDir(path, "/tmp", os.TempDir())
	return &Home{path: path, runtime: dir}, err
}

// Exists says whether the home is there.
func (h *Home) Exists() bool {
	_, err := os.Stat(h.path)
	return err == nil
}

// ErrReadOnly says that nothing can be written in a home.
var ErrReadOnly = errors.New("nothing can be written there")

// Writable says why nothing can be written in the home, and what to do.
func (h *Home) Writable() error {
	if err := unix.Access(h.path, unix.W_OK); err != nil {
		return fmt.Errorf("open the home %s: %w: %w; make it writable, or set %s to another directory", h.path, ErrReadOnly, err, HomeEnv)
	}
	return nil
}

// HomePath is where the home is, or would be; nothing is created.
func HomePath(env func(string) (string, bool)) (string, error) {
	return homePath(env, runtime.GOOS)
}

func homePath(env func(string) (string, bool), goos string) (string, error) {
	if p, ok := env(HomeEnv); ok && p != "" {
		return p, nil
	}
	if p, ok := env(xdgEnv); ok && filepath.IsAbs(p) {
		return filepath.Join(p, "switchboard"), nil
	}
	user, ok := env("HOME")
	if !ok || !filepath.IsAbs(user) {
		return "", fmt.Errorf("there is no place for the state: set %s to a directory (HOME is not set)", HomeEnv)
	}
	if goos == "darwin" {
		return filepath.Join(user, "Library", "Application Support", "switchboard"), nil
	}
	return filepath.Join(user, ".local", "share", "switchboard"), nil
}

// Path is the home itself.
func (h *Home) Path() string { return h.path }

// Config is the configuration file.
func (h *Home) Config() string { return filepath.Join(h.path, "config.yaml") }

// Secrets is the secrets file.
func (h *Home) Secrets() string { return filepath.Join(h.path, "secrets.env") }

// Database is the journal.
func (h *Home) Database() string { return filepath.Join(h.path, "switchboard.db") }

// Extensions holds a directory for each dropped-in extension. It exists in a home
// that was opened.
func (h *Home) Extensions() string { return filepath.Join(h.path, "extensions") }

// Backups holds the nightly backups, and those that were given no other place.
func (h *Home) Backups() string { return filepath.Join(h.path, "backups") }

// RuntimeDir is for sockets. In a home that was opened it exists, and nobody else
// can look into it. It is the same for everyone who opens this home, and short
// enough for the name of a socket to fit.
func (h *Home) RuntimeDir() string { return h.runtime }

// runtimeDir is <home>/run if socket names fit, else a directory of this home
// in the first of the temp directories where they do.
func runtimeDir(home string, temps ...string) (string, error) {
	if dir := filepath.Join(home, "run"); len(dir)+socketRoom < maxSocket {
		if err := private(dir); err != nil {
			return "", fmt.Errorf("create the runtime directory: %w", err)
		}
		return dir, nil
	}
	var failed error
	for _, dir := range runtimeDirs(home, temps) {
		if len(dir)+socketRoom >= maxSocket {
			failed = errors.Join(failed, fmt.Errorf("%s is too long for sockets too", dir))
			continue
		}
		err := ours(dir)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("create the runtime directory, as %s is too long for sockets: %w", home, err)
		}
		failed = errors.Join(failed, err)
	}
	return "", fmt.Errorf("there is no place for sockets, as %s is too long; set %s to a shorter path: %w", home, HomeEnv, failed)
}

// runtimeDirs are the directories of a home in those for temporary files.
func runtimeDirs(home string, temps []string) (dirs []string) {
	sum := sha256.Sum256([]byte(home))
	for _, temp := range temps {
		dirs = append(dirs, filepath.Join(temp, "switchboard-"+hex.EncodeToString(sum[:6])))
	}
	return dirs
}

// findRuntimeDir is what runtimeDir has made, or would make.
func findRuntimeDir(home string, temps ...string) (string, error) {
	if dir := filepath.Join(home, "run"); len(dir)+socketRoom < maxSocket {
		return dir, nil
	}
	dirs := runtimeDirs(home, temps)
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = owned(dir, info)
		}
		if err != nil {
			return "", fmt.Errorf("find the runtime directory: %w", err)
		}
		return dir, nil
	}
	return dirs[0], nil
}

// private makes sure that a directory exists, is ours and open to us alone.
// The name may be a symbolic link.
func private(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if err := owned(dir, info); err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("close %s to other users: %w", dir, err)
		}
	}
	return nil
}

// ours makes sure of a directory where others can create files too: what is
// there already must be exactly what we would have made.
func ours(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if err := owned(dir, info); err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode != 0o700 {
		return fmt.Errorf("%s has mode %04o instead of 0700; see who made it, and remove it", dir, mode)
	}
	return nil
}

func owned(dir string, info fs.FileInfo) error {
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (id %d)", dir, s.Uid)
	}
	return nil
}
