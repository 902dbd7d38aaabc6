package main

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// forget drops the system's cache of a file, as after a boot.
func forget(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
}
