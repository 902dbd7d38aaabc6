package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// disksEach is how many looks at the usage there are for one at the disk.
	disksEach = 5
	// aloneEvery is how many times as long a process that starts no others is not
	// looked at.
	aloneEvery = 5
	// threadsEach is how many threads there may be for each process that there
	// may be: each counts against what the user and the system may have.
	threadsEach = 64
)

// weigh ends a process that outgrows its limits, and what it has left behind.
func (s *Supervisor) weigh(proc process, l limits, data []Spec) {
	every := s.options.UsageInterval
	if l.alone { // it is the kernel's own program
		every *= aloneEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-proc.Context().Done():
			return
		case <-ticker.C:
		}
		if err := s.outgrown(proc, l); err != nil {
			proc.Kill("it was killed: " + err.Error())
			return
		}
		if n%disksEach != 0 {
			continue
		}
		if err := cmp.Or(concealed(proc.Hidden(), l, data), room(data)); err != nil {
			proc.Kill("it was killed: " + err.Error())
			return
		}
		if s.spawner != nil {
			s.spawner.sweep()
		}
	}
}

// outgrown says which limit of a process is passed.
func (s *Supervisor) outgrown(proc process, l limits) error {
	if l.memory == 0 && l.processes == 0 {
		return nil
	}
	switch used, err := proc.Usage(!l.alone); {
	case err != nil:
		s.log.Debug("what an extension uses is unknown", "error", err)
	case l.memory > 0 && used.Memory > l.memory:
		return fmt.Errorf("it used %d MiB of memory, and run.memory allows %d MiB", used.Memory>>20, l.memory>>20)
	case l.processes > 0 && used.Processes > l.processes:
		return fmt.Errorf("it was %d processes, and run.processes allows %d", used.Processes, l.processes)
	case l.processes > 0 && used.Threads > l.processes*threadsEach:
		return fmt.Errorf("it had %d threads, and run.processes allows %d processes of %d each", used.Threads, l.processes, threadsEach)
	}
	return nil
}

// concealed says which limit is passed by what no directory shows.
func concealed(h hidden, l limits, data []Spec) error {
	var disk int64
	for _, spec := range data {
		if spec.Disk <= 0 {
			disk = 0
			break
		}
		disk += spec.Disk
	}
	switch {
	case l.memory > 0 && h.memory > l.memory:
		return fmt.Errorf("it kept %d MiB of memory in files without a name, and run.memory allows %d MiB", h.memory>>20, l.memory>>20)
	case disk > 0 && h.disk > disk:
		return fmt.Errorf("it held %d MiB in open files that have no name, and beside its socket, and run.disk allows %d MiB", h.disk>>20, disk>>20)
	}
	return nil
}

// room says whose data directory holds more than it may.
func room(data []Spec) error {
	for _, spec := range data {
		if spec.Disk <= 0 || spec.DataDir == "" {
			continue
		}
		for _, dir := range []string{spec.DataDir, spec.RunDir} {
			if dir != "" && onDisk(dir, spec.Disk) > spec.Disk {
				return permanent{fmt.Errorf("the data directory of %s holds more than the %d MiB that run.disk allows: make room in %s, or raise run.disk in its manifest",
					spec.ID, spec.Disk>>20, dir)}
			}
		}
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
func onDisk(dir string, limit int64) (used int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what vanished meanwhile takes no space
		}
		used += fileSize
		if info, err := d.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				used += stat.Blocks * blockSize
			}
		}
		if used > limit {
			return errEnough
		}
		return nil
	})
	return used
}
