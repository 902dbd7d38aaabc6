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

// Remove removes an extension from the home. Its data stays.
func (i *Installer) Remove(ctx context.Context, id string) error {
	if _, err := Read(ctx, i.options.Home, id); errors.Is(err, ErrNotInstalled) {
		return err
	}
	dir := i.options.Home.Extensions()
	if err := i.vanish(filepath.Join(dir, id)); err != nil {
		return fmt.Errorf("remove %s: %w", filepath.Join(dir, id), err)
	}
	return nil
}

// RemoveData removes the files of an extension that no longer runs.
func (i *Installer) RemoveData(id string) error {
	if !filepath.IsLocal(id) {
		return fmt.Errorf("%s: %w", id, ErrNotInstalled)
	}
	err := i.vanish(i.DataDir(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", i.DataDir(id), err)
	}
	return nil
}

// vanish removes a directory at once: it is renamed before its files go.
func (i *Installer) vanish(path string) error {
	stage, err := os.MkdirTemp(i.options.Home.Extensions(), stagingPrefix)
	if err != nil {
		return err
	}
	i.options.step("remove")
	if err := os.Rename(path, filepath.Join(stage, "removed")); err != nil {
		return errors.Join(err, os.Remove(stage))
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	i.options.step("removed")
	return removeAll(stage)
}
