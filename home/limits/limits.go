// Package limits checks extensions against the limits of their manifests on memory,
// processes and disk. Check measures,
// Guarded stops a process over a limit.
//
// On Linux it counts all descendants of a process, and unlinked files that they hold
// open; elsewhere only the memory of the process itself and the files in its
// directories.
package limits

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"syscall"

	"github.com/switchboard-run/switchboard/contract/sandbox"
)

// threadsEach is the number of threads allowed per allowed process: threads count
// against the limits of the user and of the system.
const threadsEach = 64

// errNoRoom means that a directory holds more than it may.
var errNoRoom = errors.New("no room")

// Check returns which limit a process is over; nil: none. With disk it looks at the
// directories and at open files that have no name, too, which takes longer; a pid of 0 means
// that the process has not started yet. It is safe for concurrent use.
func Check(pid int, l sandbox.Limits, disk bool) error {
	if pid != 0 {
		if err := checkUsage(pid, l); err != nil {
			return err
		}
		if disk {
			if err := checkUnlinked(pid, l); err != nil {
				return err
			}
		}
	}
	if !disk {
		return nil
	}
	for _, r := range l.Rooms {
		if r.Dir != "" && r.Bytes > 0 && onDisk(r.Dir, r.Bytes) > r.Bytes {
			return fmt.Errorf("%w: the data directory of %s is larger than the %d MiB that run.disk allows: "+
				"delete files in %s, or raise run.disk in its manifest",
				errNoRoom, r.ID, r.Bytes>>20, r.Dir)
		}
	}
	return nil
}

// used is the usage of a process and its descendants.
type used struct {
	memory    int64 // resident, in bytes
	processes int
	threads   int
}

func checkUsage(pid int, l sandbox.Limits) error {
	if l.Memory == 0 && l.Processes == 0 {
		return nil
	}
	u, err := usageOf(pid, !l.Alone)
	if err != nil {
		return nil //nolint:nilerr // the process has just ended
	}
	switch {
	case l.Memory > 0 && u.memory > l.Memory:
		return fmt.Errorf("it used %d MiB of memory, and run.memory allows %d MiB", u.memory>>20, l.Memory>>20)
	case l.Processes > 0 && u.processes > l.Processes:
		return fmt.Errorf("it ran %d processes, and run.processes allows %d", u.processes, l.Processes)
	case l.Processes > 0 && u.threads > l.Processes*threadsEach:
		return fmt.Errorf("it ran %d threads, and run.processes allows %d processes of %d each",
			u.threads, l.Processes, threadsEach)
	}
	return nil
}

// unlinked is the size of the open files without a name of a process and its
// descendants, in bytes.
type unlinked struct{ disk, memory int64 }

func checkUnlinked(pid int, l sandbox.Limits) error {
	u := unlinkedOf(pid)
	if l.Sockets != "" {
		u.disk += onDisk(l.Sockets, math.MaxInt64)
	}
	allowed, unlimited := map[string]int64{}, false
	for _, r := range l.Rooms {
		allowed[r.ID] = r.Bytes
		unlimited = unlimited || r.Bytes == 0
	}
	var disk int64
	for _, bytes := range allowed {
		disk += bytes
	}
	if unlimited {
		disk = 0
	}
	switch {
	case l.Memory > 0 && u.memory > l.Memory:
		return fmt.Errorf("it held %d MiB of memory in files without a name, and run.memory allows %d MiB",
			u.memory>>20, l.Memory>>20)
	case disk > 0 && u.disk > disk:
		return fmt.Errorf("it held %d MiB in open files without a name and beside its socket, and run.disk allows %d MiB",
			u.disk>>20, disk>>20)
	}
	return nil
}

const (
	blockSize = 512  // unit of Stat_t.Blocks
	fileSize  = 1024 // counted for each file, also an empty one
)

var errEnough = errors.New("more than the limit")

// onDisk returns the disk space of a directory's files. It stops counting above the
// limit.
func onDisk(dir string, limit int64) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a deleted file takes no space
		}
		sum += fileSize
		if info, err := d.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				sum += stat.Blocks * blockSize
			}
		}
		if sum > limit {
			return errEnough
		}
		return nil
	})
	return sum
}
