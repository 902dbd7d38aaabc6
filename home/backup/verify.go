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
	"github.com/switchboard-run/switchboard/store/blobfiles"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// Verify reads all of a backup and describes it. It unpacks it into a temporary
// directory in work, which needs the space, and changes nothing else. A store
// alone, as a migration keeps it, is a backup too.
func Verify(ctx context.Context, file, work string) (Info, error) {
	if err := os.MkdirAll(work, 0o700); err != nil {
		return Info{}, fmt.Errorf("unpack %s: %w", file, err)
	}
	dir, err := os.MkdirTemp(work, unfinished)
	if err != nil {
		return Info{}, fmt.Errorf("unpack %s: %w", file, err)
	}
	defer os.RemoveAll(dir)
	use, err := os.Open(dir)
	if err != nil {
		return Info{}, fmt.Errorf("unpack %s: %w", file, err)
	}
	defer use.Close()
	_ = unix.Flock(int(use.Fd()), unix.LOCK_EX) // so that Sweep keeps it
	if !exists(dir) {
		return Info{}, fmt.Errorf("unpack %s: a starting kernel removed the temporary directory: try again", file)
	}
	info, outside, err := unpack(ctx, file, dir, reserved)
	if err != nil {
		return info, err
	}
	info.Lost = nil
	c := newCopier(ctx, 0, false)
	for _, hash := range outside {
		intact := false
		for _, from := range fileSources(file) {
			if intact, err = c.read(from, hash, io.Discard); intact || err != nil {
				break
			}
		}
		if err != nil {
			return info, fmt.Errorf("read the file %s of %s: %w", hash, file, err)
		}
		if !intact {
			info.Lost = append(info.Lost, hash)
		}
	}
	if !exists(file) { // and with it its files
		return info, fmt.Errorf("verify %s: the backup was removed meanwhile", file)
	}
	return info, nil
}

// unpack extracts a backup into dir and checks it. It leaves left bytes free on
// the disk. Outside are the files of messages that the backup lacks or has damaged.
func unpack(ctx context.Context, file, dir string, left uint64) (info Info, outside []string, err error) {
	stat, err := os.Stat(file)
	if err != nil {
		return info, nil, err
	}
	if !stat.Mode().IsRegular() {
		return info, nil, fmt.Errorf("%w: %s is not a regular file", ErrUnusable, file)
	}
	store := filepath.Join(dir, storeName)
	alone, err := isStore(file)
	if err == nil && alone {
		info = Info{CreatedAt: stat.ModTime().UTC(), Parts: []string{storeName}, Files: 1}
		if err = checkSpace(dir, stat.Size(), left); err == nil {
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
		return info, nil, ctx.Err()
	case errors.Is(err, errNoSpace), errors.Is(err, syscall.ENOSPC):
		return info, nil, fmt.Errorf("unpack %s: %w", file, err)
	case errors.Is(err, journal.ErrNewer):
		return info, nil, fmt.Errorf("%w: a newer version of Switchboard%s made %s: install that version to restore it",
			ErrUnusable, by(info), file)
	case err != nil:
		return info, nil, fmt.Errorf("%w: %s: %w", ErrUnusable, file, err)
	}
	recorded := info.Events
	info.File, info.Bytes = file, stat.Size()
	if stat, err := os.Stat(store); err == nil {
		info.StoreBytes = stat.Size()
	}
	if !alone { // the store alone is restored beside the files that the home has
		if outside, err = blobfiles.Dir(filepath.Join(dir, partFiles)).Lost(contents.Blobs); err != nil {
			return info, nil, fmt.Errorf("read the files of %s: %w", file, err)
		}
	}
	if info.describe(contents); !alone && recorded != info.Events {
		return info, nil, fmt.Errorf("%w: %s: %s records %d events, but the store has %d",
			ErrUnusable, file, aboutName, recorded, info.Events)
	}
	return info, outside, nil
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
		return false, nil //nolint:nilerr // too short for a store
	}
	return string(head) == magic, nil
}
