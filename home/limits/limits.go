// Package limits holds extensions to what their manifests allow of memory,
// processes and disk. It only looks: the supervisor ends what is over a limit.
//
// On Linux everything that a process has started is counted, and files without a
// name too; elsewhere only the memory of the process itself and the files in its
// directories.
package limits

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"syscall"

	"github.com/switchboard-run/switchboard/kernel/sandbox"
)

// threadsEach is how many threads there may be for each process that there may
// be: each counts against what the user and the system may have.
const threadsEach = 64

// Guard implements sandbox.Guard.
func Guard(pid int, l sandbox.Limits, disk bool) error {
	if pid != 0 {
		if err := usage(pid, l); err != nil {
			return err
		}
		if disk {
			if err := nameless(pid, l); err != nil {
				return err
			}
		}
	}
	if !disk {
		return nil
	}
	for _, r := range l.Rooms {
		if r.Dir != "" && r.Bytes > 0 && onDisk(r.Dir, r.Bytes) > r.Bytes {
			return fmt.Errorf("%w: the data directory of %s holds more than the %d MiB that run.disk allows: make room in %s, or raise run.disk in its manifest",
				sandbox.ErrNoRoom, r.ID, r.Bytes>>20, r.Dir)
		}
	}
	return nil
}

// used is what a process and those below it use.
type used struct {
	memory    int64 // resident, in bytes
	processes int
	threads   int // of all of them
}

func usage(pid int, l sandbox.Limits) error {
	if l.Memory == 0 && l.Processes == 0 {
		return nil
	}
	u, err := usageOf(pid, !l.Alone)
	if err != nil {
		return nil //nolint:nilerr // it has just ended
	}
	switch {
	case l.Memory > 0 && u.memory > l.Memory:
		return fmt.Errorf("it used %d MiB of memory, and run.memory allows %d MiB", u.memory>>20, l.Memory>>20)
	case l.Processes > 0 && u.processes > l.Processes:
		return fmt.Errorf("it was %d processes, and run.processes allows %d", u.processes, l.Processes)
	case l.Processes > 0 && u.threads > l.Processes*threadsEach:
		return fmt.Errorf("it had %d threads, and run.processes allows %d processes of %d each", u.threads, l.Processes, threadsEach)
	}
	return nil
}

// hidden is what a process and those below it hold in open files without a name,
// in bytes.
type hidden struct{ disk, memory int64 }

func nameless(pid int, l sandbox.Limits) error {
	h := hiddenOf(pid)
	if l.Sockets != "" {
		h.disk += onDisk(l.Sockets, math.MaxInt64)
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
	case l.Memory > 0 && h.memory > l.Memory:
		return fmt.Errorf("it kept %d MiB of memory in files without a name, and run.memory allows %d MiB", h.memory>>20, l.Memory>>20)
	case disk > 0 && h.disk > disk:
		return fmt.Errorf("it held %d MiB in open files that have no name, and beside its socket, and run.disk allows %d MiB", h.disk>>20, disk>>20)
	}
	return nil
}

const (
	blockSize = 512  // of what the system counts the space of a file in
	fileSize  = 1024 // that each file counts for, though it may be empty
)

var errEnough = errors.New("more than the limit")

// onDisk is the space that the files of a directory take; it stops counting
// above the limit.
func onDisk(dir string, limit int64) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what vanished meanwhile takes no space
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
