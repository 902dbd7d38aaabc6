package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Intervals of checks that the store's file is still in its place.
const (
	ownerCheck     = 3 * time.Second        // while nothing is written
	ownerCheckBusy = 100 * time.Millisecond // at most, while something is
)

// owner keeps the store's file for one process. SQLite lets several write.
type owner struct {
	path string
	file *os.File // locked; closing it earlier than SQLite's own would drop SQLite's locks
	info os.FileInfo
}

// own locks the file for this process, until the owner is closed or the process ends.
// It returns journal.ErrFenced if another process has it.
func own(path string) (*owner, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("%w: stop it first", journal.ErrFenced)
		}
		return nil, err
	}
	return &owner{path: path, file: f, info: info}, nil
}

// Free returns journal.ErrFenced if another process has the store open. A process
// that has it open itself must not ask.
func Free(path string) error {
	o, err := own(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		o.close()
	}
	return err
}

// check returns journal.ErrLost if another file is in the place of the store's, or
// none. What is written then would be gone when the process ends.
func (o *owner) check() error {
	info, err := os.Stat(o.path)
	if err == nil && os.SameFile(info, o.info) {
		return nil
	}
	return fmt.Errorf("%w: %s was moved or deleted. Nothing new is accepted. "+
		"Move the file back; or, while Switchboard still runs, make a backup, stop, and restore the backup", journal.ErrLost,
		o.path)
}

func (o *owner) close() { _ = o.file.Close() }
