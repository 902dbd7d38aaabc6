package backup

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"
)

// reserved is how many bytes a backup leaves free on a disk: a full disk refuses
// messages.
const reserved = 128 << 20

// freeIn returns the free bytes for this user on the disk of a directory. Tests
// replace it.
var freeIn = func(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return fs.Bavail * uint64(fs.Bsize), nil //nolint:gosec,unconvert // not negative; its type differs by system
}

// errNoSpace does not make a backup unusable.
var errNoSpace = errors.New("not enough disk space")

// checkSpace fails unless the disk of dir has room for bytes and left more.
func checkSpace(dir string, bytes int64, left uint64) error {
	free, err := freeIn(dir)
	if err != nil {
		return nil //nolint:nilerr // a full disk then fails the write
	}
	need := uint64(max(bytes, 0)) + left //nolint:gosec // not negative
	if free >= need {
		return nil
	}
	needs := humanize.IBytes(need) + " needed"
	if left > 0 {
		needs += ", " + humanize.IBytes(left) + " of which stay free for messages"
	}
	return fmt.Errorf("%w: the disk of %s has %s free, %s; free some, or choose a file on another disk",
		errNoSpace, filepath.Dir(dir), humanize.IBytes(free), needs)
}
