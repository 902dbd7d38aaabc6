package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// DataDir returns the directory in which an extension of a home has its files.
func (i *Installer) DataDir(id string) string {
	return filepath.Join(i.options.Home.Path(), "data", id)
}

// Remove takes an extension out of the home, at once. Its data stays. Discard removes its
// files, which a process may still use until it has stopped.
func (i *Installer) Remove(ctx context.Context, id string) (discard func() error, err error) {
	if _, err := Read(ctx, i.options.Home, id); errors.Is(err, ErrNotInstalled) {
		return nil, err
	}
	path := filepath.Join(i.options.Home.Extensions(), id)
	if discard, err = i.vanish(path); err != nil {
		return nil, fmt.Errorf("remove %s: %w", path, err)
	}
	return discard, nil
}

// RemoveData removes the files of an extension that no longer runs.
func (i *Installer) RemoveData(id string) error {
	if !filepath.IsLocal(id) {
		return fmt.Errorf("%s: %w", id, ErrNotInstalled)
	}
	discard, err := i.vanish(i.DataDir(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = discard()
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", i.DataDir(id), err)
	}
	return nil
}

// vanish takes a directory away at once, by a rename; discard removes its files.
func (i *Installer) vanish(path string) (discard func() error, err error) {
	stage, err := os.MkdirTemp(i.options.Home.Extensions(), stagingPrefix)
	if err != nil {
		return nil, err
	}
	i.options.step("remove")
	if err := os.Rename(path, filepath.Join(stage, "removed")); err != nil {
		return nil, errors.Join(err, os.Remove(stage))
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	i.options.step("removed")
	return func() error { return removeAll(stage) }, nil
}
