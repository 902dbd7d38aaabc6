package config

import (
	"cmp"
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

// Environment variables that set the home.
const (
	HomeEnv = "SWITCHBOARD_HOME"
	xdgEnv  = "XDG_DATA_HOME"
)

const (
	// maxSocket bounds the path of a unix socket, exclusive; macOS allows 104 bytes
	// with the terminating zero.
	maxSocket = 100
	// socketRoom is the length of a socket's path below the runtime directory:
	// /plugin-dir1234567890/plugin1234567890.
	socketRoom = 40
)

// Home is the directory that holds all state of one kernel.
type Home struct {
	path    string
	runtime string
}

// OpenHome opens the home, creates it and its parts if they are missing, and closes
// it to other users. Its path is $SWITCHBOARD_HOME, or in the system's directory
// for application data.
func OpenHome(env func(string) (string, bool)) (*Home, error) {
	path, err := HomePath(env)
	if err != nil {
		return nil, err
	}
	return OpenHomeAt(path)
}

// OpenHomeAt is OpenHome for a given directory.
func OpenHomeAt(path string) (*Home, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the home %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create the home %s: %w; set %s to a directory that can be written", path, err, HomeEnv)
	}
	// Without symbolic links, as the name of the runtime directory depends on the
	// path.
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
	if h.runtime, err = runtimeDir(path, temps()...); err != nil {
		return nil, err
	}
	return h, nil
}

// FindHome returns the home for reading: it creates and changes nothing, and the
// paths of the result need not exist. It refuses a directory of another user.
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
	dir, err := findRuntimeDir(path, temps()...)
	return &Home{path: path, runtime: dir}, err
}

// Exists reports whether the home exists.
func (h *Home) Exists() bool {
	_, err := os.Stat(h.path)
	return err == nil
}

// ErrReadOnly means that the home is not writable.
var ErrReadOnly = errors.New("the directory is not writable")

// Writable returns an error if this user cannot write in the home.
func (h *Home) Writable() error {
	if err := unix.Access(h.path, unix.W_OK); err != nil {
		return fmt.Errorf("open the home %s: %w: %w; make it writable, or set %s to another directory",
			h.path, ErrReadOnly, err, HomeEnv)
	}
	return nil
}

// HomePath returns the path of the home, which need not exist.
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
		return "", fmt.Errorf("find the home: HOME is not set; set %s to a directory", HomeEnv)
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

// Servers is the file that lists MCP servers.
func (h *Home) Servers() string { return filepath.Join(h.path, "mcp.json") }

// Database is the journal.
func (h *Home) Database() string { return filepath.Join(h.path, "switchboard.db") }

// Files is the directory of the files that come with messages.
func (h *Home) Files() string { return filepath.Join(h.path, "blobs") }

// Extensions has a directory for each dropped-in extension. OpenHome creates it.
func (h *Home) Extensions() string { return filepath.Join(h.path, "extensions") }

// Joining is the file that a home has while it joins a cluster.
func (h *Home) Joining() string { return filepath.Join(h.path, "cluster-join.json") }

// Backups has the nightly backups, and manual ones by default.
func (h *Home) Backups() string { return filepath.Join(h.path, "backups") }

// RuntimeDir is the directory for sockets. OpenHome creates it, closed to other
// users. Each process that opens this home gets the same one, short enough for the
// names of sockets.
func (h *Home) RuntimeDir() string { return h.runtime }

// temps are the directories for runtime directories that do not fit into their home.
func temps() []string { return []string{"/tmp", os.TempDir()} }

// Private lists the directories that are closed to extensions but for their own parts: the
// home and its sockets, and, on a node of a cluster, the homes and sockets of all its cells.
func (h *Home) Private() []string {
	node := cmp.Or(h.Node(), h.path)
	homes, _ := filepath.Glob(filepath.Join(node, cells, "*")) // only a malformed pattern is an error
	all := []string{node, h.runtime}
	for _, home := range append(homes, node) {
		if dir, err := findRuntimeDir(home, temps()...); err == nil && dir != h.runtime && filepath.Dir(dir) != home {
			all = append(all, dir)
		}
	}
	return all
}

// runtimeDir creates and returns <home>/run if socket names fit, else a directory
// for this home in the first of temps where they do.
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
			failed = errors.Join(failed, fmt.Errorf("%s is also too long for sockets", dir))
			continue
		}
		err := privateTemp(dir)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("create the runtime directory, as %s is too long for sockets: %w", home, err)
		}
		failed = errors.Join(failed, err)
	}
	return "", fmt.Errorf("create the runtime directory: %s is too long for sockets; set %s to a shorter path: %w",
		home, HomeEnv, failed)
}

// runtimeDirs returns the possible runtime directories of a home in temps.
func runtimeDirs(home string, temps []string) (dirs []string) {
	sum := sha256.Sum256([]byte(home))
	for _, temp := range temps {
		dirs = append(dirs, filepath.Join(temp, "switchboard-"+hex.EncodeToString(sum[:6])))
	}
	return dirs
}

// findRuntimeDir returns the directory of runtimeDir without creating it.
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

// private ensures that a directory exists, belongs to this user and is closed to
// others. It may be a symbolic link.
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

// privateTemp creates a private directory where other users can create files too:
// an existing one must belong to this user and have the right mode.
func privateTemp(dir string) error {
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
		return fmt.Errorf("%s has mode %04o instead of 0700: remove it if it is not in use", dir, mode)
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
