package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// Verify reads all of a backup and says what is in it. It unpacks it in a
// directory of work, which must have room for it, and changes nothing. A store
// alone, as it is kept before a migration, is a backup too.
func Verify(ctx context.Context, file, work string) (Info, error) {
	if err := os.MkdirAll(work, 0o700); err != nil {
		return Info{}, fmt.Errorf("making room to unpack %s: %w", file, err)
	}
	dir, err := os.MkdirTemp(work, unfinished)
	if err != nil {
		return Info{}, fmt.Errorf("making room to unpack %s: %w", file, err)
	}
	defer os.RemoveAll(dir)
	use, err := os.Open(dir)
	if err != nil {
		return Info{}, fmt.Errorf("making room to unpack %s: %w", file, err)
	}
	defer use.Close()
	_ = unix.Flock(int(use.Fd()), unix.LOCK_EX) // a kernel that starts meanwhile leaves it
	if !there(dir) {
		return Info{}, fmt.Errorf("a kernel was being started and has removed where %s was to be unpacked: try again", file)
	}
	return unpack(ctx, file, dir, spare)
}

// unpack has a checked backup in dir, and leaves so much free on its disk.
func unpack(ctx context.Context, file, dir string, left uint64) (info Info, err error) {
	stat, err := os.Stat(file)
	if err != nil {
		return info, err
	}
	if !stat.Mode().IsRegular() {
		return info, fmt.Errorf("%w: %s is no file", ErrUnusable, file)
	}
	store := filepath.Join(dir, storeName)
	alone, err := isStore(file)
	if err == nil && alone {
		info = Info{CreatedAt: stat.ModTime().UTC(), Parts: []string{storeName}, Files: 1}
		if err = leaves(dir, stat.Size(), left); err == nil {
			err = sqlite.Copy(ctx, file, store)
		}
	} else if err == nil {
		info, err = extract(ctx, file, dir, left)
	}
	var contents sqlite.Contents
	if err == nil {
		contents, err = sqlite.Examine(ctx, store)
	}
	switch {
	case ctx.Err() != nil:
		return info, ctx.Err()
	case errors.Is(err, errNoRoom), errors.Is(err, syscall.ENOSPC):
		return info, fmt.Errorf("unpacking %s: %w", file, err)
	case errors.Is(err, journal.ErrNewer):
		return info, fmt.Errorf("%w: %s was made by a newer version of Switchboard%s: install that one to restore it", ErrUnusable, file, by(info))
	case err != nil:
		return info, fmt.Errorf("%w: %s: %w", ErrUnusable, file, err)
	}
	said := info.Events
	info.File, info.Bytes = file, stat.Size()
	if stat, err := os.Stat(store); err == nil {
		info.StoreBytes = stat.Size()
	}
	if info.describe(contents); !alone && said != info.Events {
		return info, fmt.Errorf("%w: %s: it says that it has %d events, and has %d", ErrUnusable, file, said, info.Events)
	}
	return info, nil
}

func by(i Info) string {
	if i.MadeBy == "" {
		return ""
	}
	return " (" + i.MadeBy + ")"
}

func isStore(file string) (bool, error) {
	const magic = "SQLite format 3\x00"
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(f, head); err != nil {
		return false, nil //nolint:nilerr // it is too short for a store, and whatever else it is
	}
	return string(head) == magic, nil
}
