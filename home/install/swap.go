package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/manifests"
)

// ErrForeign means that an extension was not put there by an Installer.
var ErrForeign = words.Errorf("it wasn't installed with `switchboard extensions install`")

// ErrChanged means that the files of an extension are not those that were installed.
var ErrChanged = words.Errorf("its files have changed since it was installed")

// Replaces returns what Commit will replace; nil: nothing.
func (s *Staged) Replaces(ctx context.Context) (*Installed, error) {
	old, err := Read(ctx, s.installer.options.Home, s.Manifest.ID)
	if errors.Is(err, ErrNotInstalled) {
		return nil, nil //nolint:nilnil // absence is no error
	}
	if old.Manifest == nil && err != nil { // its manifest is invalid: it is replaced all the same
		return &old, nil //nolint:nilerr // the kernel names the mistakes
	}
	return &old, err
}

// Replaceable returns ErrForeign or ErrChanged for an extension that only force replaces; nil
// is replaceable.
func (x *Installed) Replaceable(id string, force bool) error {
	switch {
	case x == nil || force:
		return nil
	case x.Record == nil:
		return fmt.Errorf("%s is in the home, and %w", id, ErrForeign)
	case x.Changed:
		return fmt.Errorf("replace %s: %w", id, ErrChanged)
	}
	return nil
}

// Commit makes the extension visible, in place of the one with its id. It refuses with
// ErrForeign or ErrChanged to replace what someone else has put or changed there, unless
// force is set. An error means that nothing has changed.
func (s *Staged) Commit(ctx context.Context, force bool) error {
	o := s.installer.options
	old, err := s.Replaces(ctx)
	if err == nil {
		err = old.Replaceable(s.Manifest.ID, force)
	}
	if err != nil {
		return err
	}
	target := filepath.Join(o.Home.Extensions(), s.Manifest.ID)
	o.step("record")
	if err := s.Record.write(s.tree); err != nil {
		return fmt.Errorf("write the record of %s: %w", s.Manifest.ID, err)
	}
	if old != nil {
		if err := keepWritten(ctx, target, s.tree, s.Manifest, o.Limits); err != nil {
			return fmt.Errorf("keep the files that %s has written: %w", s.Manifest.ID, err)
		}
	}
	o.step("sync")
	if err := syncTree(s.tree); err != nil {
		return fmt.Errorf("write the files of %s to the disk: %w", s.Manifest.ID, err)
	}
	o.step("swap")
	if err := s.swap(target, old != nil); err != nil {
		return fmt.Errorf("put %s into %s: %w", s.Manifest.ID, o.Home.Extensions(), err)
	}
	o.step("done")
	return nil
}

// swap renames the staged directory. The old one takes its place, until Discard.
func (s *Staged) swap(target string, exists bool) error {
	parent := filepath.Dir(target)
	if !exists {
		if _, err := os.Lstat(target); err == nil {
			return fmt.Errorf("%s has appeared meanwhile", target)
		}
		return errors.Join(os.Rename(s.tree, target), syncDir(parent))
	}
	err := errUnsupported
	if !s.installer.options.noExchange {
		err = exchange(s.tree, target)
	}
	if !unsupported(err) {
		return errors.Join(err, syncDir(parent), syncDir(filepath.Dir(s.tree)))
	}
	// In two steps. A kill between them is repaired by sweep.
	aside := filepath.Join(parent, oldPrefix+filepath.Base(target))
	if err := os.Rename(target, aside); err != nil {
		return err
	}
	_ = syncDir(parent)
	s.installer.options.step("between")
	if err := os.Rename(s.tree, target); err != nil {
		return errors.Join(err, os.Rename(aside, target), syncDir(parent))
	}
	return errors.Join(syncDir(parent), os.Rename(aside, s.tree), syncDir(parent))
}

var errUnsupported = errors.New("two directories can't be exchanged here")

// unsupported reports whether a file system cannot exchange two directories.
func unsupported(err error) bool {
	return errors.Is(err, errUnsupported) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) ||
		errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EPERM)
}

// keepWritten copies what the old version has written beside its manifest, where the new
// one may write, too.
func keepWritten(ctx context.Context, from, to string, m *manifests.Manifest, limits Limits) error {
	for _, name := range writable(m) {
		source := filepath.Join(from, name)
		if info, err := os.Lstat(source); errors.Is(err, fs.ErrNotExist) || err == nil && !regularOrDir(info.Mode()) {
			continue
		}
		target := filepath.Join(to, name)
		if err := errors.Join(removeAll(target), os.MkdirAll(filepath.Dir(target), 0o700)); err != nil {
			return err
		}
		if err := copyWritten(ctx, source, target, limits); err != nil {
			return err
		}
	}
	return nil
}

func regularOrDir(m fs.FileMode) bool { return m.IsRegular() || m.IsDir() }

// copyWritten copies regular files and directories, makes pipes again, and leaves out
// everything else, such as links.
func copyWritten(ctx context.Context, from, to string, limits Limits) error {
	count := &meter{t: &tree{limits: limits}}
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Mkdir(filepath.Join(to, name), 0o700)
		}
		if d.Type() == fs.ModeNamedPipe {
			return unix.Mkfifo(filepath.Join(to, name), 0o600)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		return copyFile(p, filepath.Join(to, name), count)
	})
}

func copyFile(from, to string, count *meter) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	count.w = out
	_, err = io.Copy(count, in)
	return errors.Join(err, out.Close())
}

// syncTree writes a directory to the disk, files before the directories that name them.
func syncTree(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			dirs = append(dirs, p)
		case d.Type().IsRegular():
			return syncFile(p)
		}
		return nil
	})
	for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
		err = syncDir(dirs[i])
	}
	return err
}

func syncFile(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func syncDir(dir string) error { return syncFile(dir) }
