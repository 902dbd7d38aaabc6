// Package install puts extensions into a home and takes them out: it fetches a directory, an
// archive, a git repository or an entry of an index, checks it, and makes it visible by one
// rename.
//
// # Promises
//
//   - A kill or a power cut at any instant leaves the old version or the new one, whole.
//     What is left over is removed by the next Open or Recover.
//   - Nothing of an extension runs while it is fetched and checked: no hook, no filter, no
//     build, not the extension itself.
//   - An extension has regular files, directories and symbolic links within its directory.
//     It has no device, no hard link, no setuid bit, no name that leads out of the directory
//     and no two names that some file systems take for one.
//   - Sizes, numbers of files and times are bounded. A server or a git that hangs is ended.
//   - One Installer at a time works on a home; a running kernel does not disturb it.
//
// # Not promised
//
// It does not decide whether an extension may run: that is the owner's consent. The record
// beside a manifest tells the owner where files came from; it is no signature.
package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/manifests"
)

const (
	stagingPrefix = ".staging-" // of a directory with what is not visible yet, or no longer
	oldPrefix     = ".old-"     // of an extension between two renames
)

// Options configure an Installer.
type Options struct {
	Home          *config.Home
	KernelVersion string
	// Check returns an error if this home cannot run an extension with this manifest; nil:
	// it can run all.
	Check func(*manifests.Manifest) error
	// Insecure allows http to servers that are not on this machine.
	Insecure bool
	// Timeout bounds a fetch; Stall how long a server or git may send nothing.
	Timeout, Stall time.Duration
	Limits         Limits
	// Environ is the environment that git gets a part of: os.Environ.
	Environ []string

	noExchange bool         // as on a file system that cannot exchange two directories
	step       func(string) // called before each step of an installation, for tests of kills
}

// Limits bound what is installed. Zero values have the defaults.
type Limits struct {
	Download int64 // bytes of an archive or a git repository
	Unpacked int64 // bytes of all files
	Files    int   // number of files, directories and links
	Ratio    int64 // of Unpacked to Download, for what is larger than ratioFrom
}

// ratioFrom is the size that any archive may unpack to.
const ratioFrom = 16 << 20

func (o Options) withDefaults() Options {
	l := &o.Limits
	l.Download, l.Unpacked = or(l.Download, 512<<20), or(l.Unpacked, 1<<30)
	l.Files, l.Ratio = or(l.Files, 50_000), or(l.Ratio, 100)
	o.Timeout, o.Stall = or(o.Timeout, 10*time.Minute), or(o.Stall, 30*time.Second)
	if o.Check == nil {
		o.Check = func(*manifests.Manifest) error { return nil }
	}
	if o.step == nil {
		o.step = func(string) {}
	}
	return o
}

func or[T int | int64 | time.Duration](value, fallback T) T {
	if value > 0 {
		return value
	}
	return fallback
}

// ErrBusy means that another Installer works on the home.
var ErrBusy = words.Errorf("another installation is running on this home: wait until it has finished")

// Installer installs extensions into one home. It is not safe for concurrent use. The
// caller must call Close.
type Installer struct {
	options Options
	lock    *os.File
}

// Open locks the extensions of a home and removes what an interrupted installation has left.
func Open(o Options) (*Installer, error) {
	i := &Installer{options: o.withDefaults()}
	lock, err := lockDir(o.Home.Extensions())
	if err != nil {
		return nil, err
	}
	i.lock = lock
	if err := sweep(o.Home.Extensions()); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// Close unlocks the home.
func (i *Installer) Close() error { return unlock(i.lock) }

// Recover removes what an interrupted installation has left, unless one is running. The
// kernel calls it at its start.
func Recover(home *config.Home) error {
	dir := home.Extensions()
	if left, err := leftovers(dir); err != nil || len(left) == 0 {
		return err
	}
	lock, err := lockDir(dir)
	if errors.Is(err, ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(sweep(dir), unlock(lock))
}

// lockDir locks a directory until the file is closed or the process ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock the directory of extensions: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrBusy
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f, nil
}

// Unfinished reports whether a name in the directory of extensions is that of an
// installation that has not finished, or of what it has replaced.
func Unfinished(name string) bool { return strings.HasPrefix(name, stagingPrefix) }

// unlock ends the lock also for processes that were just forked and have its descriptor.
func unlock(lock *os.File) error {
	return errors.Join(unix.Flock(int(lock.Fd()), unix.LOCK_UN), lock.Close())
}

func leftovers(dir string) (names []string, err error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	for _, e := range all {
		if strings.HasPrefix(e.Name(), stagingPrefix) || strings.HasPrefix(e.Name(), oldPrefix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// sweep removes leftovers. An extension that was interrupted between two renames gets its
// old version back.
func sweep(dir string) error {
	left, err := leftovers(dir)
	if err != nil {
		return err
	}
	for _, name := range left {
		path := filepath.Join(dir, name)
		if id, old := strings.CutPrefix(name, oldPrefix); old {
			if _, err := os.Lstat(filepath.Join(dir, id)); errors.Is(err, os.ErrNotExist) {
				if err := errors.Join(os.Rename(path, filepath.Join(dir, id)), syncDir(dir)); err != nil {
					return fmt.Errorf("restore the extension %s: %w", id, err)
				}
				continue
			}
		}
		if err := removeAll(path); err != nil {
			return fmt.Errorf("remove what an interrupted installation has left: %w", err)
		}
	}
	return nil
}

// removeAll removes a tree that may have directories without write permission.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) //nolint:gosec // the user's own directory, of a process that has ended
		}
		return nil
	})
	return os.RemoveAll(path)
}

// Staged is an extension that was fetched and checked, and is not visible yet.
type Staged struct {
	Manifest *manifests.Manifest // as it will be in the home
	Record   Record

	installer *Installer
	dir       string // of this stage
	tree      string // the extension in dir; after Commit, what it replaced
}

// Fetch fetches and checks an extension. The caller must call Discard.
func (i *Installer) Fetch(ctx context.Context, from Source) (_ *Staged, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, i.options.Timeout,
		words.Errorf("not finished after %s", i.options.Timeout))
	defer cancel()
	dir, err := os.MkdirTemp(i.options.Home.Extensions(), stagingPrefix)
	if err != nil {
		return nil, fmt.Errorf("create a directory for the installation: %w", err)
	}
	s := &Staged{installer: i, dir: dir}
	defer func() {
		if err != nil {
			_ = s.Discard()
			if cause := context.Cause(limited); cause != nil && ctx.Err() == nil {
				err = words.Errorf("fetch %s: %w", from, cause)
			}
		}
	}()
	i.options.step("fetch")
	unpacked, got, err := i.fetch(limited, dir, from)
	if err != nil {
		return nil, err
	}
	i.options.step("check")
	if s.tree, err = topOf(unpacked); err != nil {
		return nil, err
	}
	if s.Manifest, err = i.check(s.tree); err != nil {
		return nil, err
	}
	if err := got.matches(s.Manifest); err != nil {
		return nil, err
	}
	s.Record = Record{
		ID: s.Manifest.ID, Version: s.Manifest.Version, Source: from, Commit: got.commit, Publisher: got.publisher,
		Archive: got.sum, InstalledAt: time.Now().UTC().Truncate(time.Second),
	}
	s.Record.Hash, err = hashOf(limited, s.tree, s.Manifest)
	return s, err
}

// Discard removes what the stage holds: what was fetched, or after Commit the old version.
func (s *Staged) Discard() error {
	if err := removeAll(s.dir); err != nil {
		return fmt.Errorf("remove %s: %w", s.dir, err)
	}
	return nil
}

// topOf returns the directory with the manifest: the top of an archive, or the only
// directory in it.
func topOf(dir string) (string, error) {
	if _, err := os.Lstat(filepath.Join(dir, manifests.FileName)); err == nil {
		return dir, nil
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(all) == 1 && all[0].IsDir() {
		inner := filepath.Join(dir, all[0].Name())
		if _, err := os.Lstat(filepath.Join(inner, manifests.FileName)); err == nil {
			return inner, nil
		}
	}
	return "", words.Errorf("%s not found: an extension has it at the top", manifests.FileName)
}
