package backup

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"
)

// spare is what a backup leaves free on a disk: messages are refused when there
// is nothing left.
const spare = 128 << 20

// freeIn is the space that is left to this user on the disk of a directory. Tests
// replace it.
var freeIn = func(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return fs.Bavail * uint64(fs.Bsize), nil //nolint:gosec,unconvert // a size is not negative; its type differs between systems
}

// errNoRoom is no fault of a backup.
var errNoRoom = errors.New("there is no room")

// leaves makes sure that there is room for so many bytes, and that some are left.
func leaves(dir string, bytes int64, left uint64) error {
	free, err := freeIn(dir)
	if err != nil {
		return nil //nolint:nilerr // then writing says so
	}
	need := uint64(max(bytes, 0)) + left //nolint:gosec // not negative
	if free >= need {
		return nil
	}
	what := humanize.IBytes(need) + " are needed"
	if left > 0 {
		what += ", " + humanize.IBytes(left) + " of which stay free for messages"
	}
	return fmt.Errorf("%w: the disk of %s has %s free, and %s: make some, or name a file on another disk", errNoRoom, filepath.Dir(dir), humanize.IBytes(free), what)
}
