package limits

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/internal/procfs"
)

// usageOf is what a process and, if asked for, those below it use.
func usageOf(pid int, below bool) (used, error) {
	own, err := residence(pid)
	if err != nil {
		return used{}, err
	}
	u := used{memory: own.anonymous + own.shared + own.files, processes: 1, threads: own.threads}
	if !below {
		return u, nil
	}
	for _, child := range descendants(pid) {
		if r, err := residence(child); err == nil {
			u.memory += r.anonymous + r.shared // its files are counted already, or the system's
			u.processes++
			u.threads += r.threads
		}
	}
	return u, nil
}

// resident is the memory of a process in bytes, and its threads.
type resident struct {
	anonymous, files int64
	shared           int64 // with other processes, this one's part of it
	threads          int
}

// manyShared is from when on it is looked up which part of shared memory is a
// process's own.
const manyShared = 1 << 20

func residence(pid int) (r resident, err error) {
	fields, err := fieldsOf(pid, "status")
	if err != nil {
		return resident{}, err
	}
	r = resident{fields["RssAnon"] << 10, fields["RssFile"] << 10, fields["RssShmem"] << 10, int(fields["Threads"])}
	if r.shared > manyShared {
		if fields, err := fieldsOf(pid, "smaps_rollup"); err == nil {
			r.shared = fields["Pss_Shmem"] << 10
		}
	}
	return r, nil
}

// fieldsOf are the numbers in a file of /proc/<pid> whose lines are "name: number".
func fieldsOf(pid int, file string) (map[string]int64, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	if err != nil {
		return nil, fmt.Errorf("reading what process %d uses: %w", pid, err)
	}
	fields := map[string]int64{}
	for line := range bytes.Lines(data) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		words := bytes.Fields(rest)
		if len(words) == 0 {
			continue
		}
		if n, err := strconv.ParseInt(string(words[0]), 10, 64); err == nil {
			fields[string(name)] = n
		}
	}
	return fields, nil
}

// maxOpen bounds how many open files are looked at.
const maxOpen = 16 << 10

// hiddenOf is what a process and those below it hold in files that have no name
// any more, or never had one.
func hiddenOf(pid int) (h hidden) {
	type file struct{ device, inode uint64 }
	seen := map[file]bool{}
	for _, pid := range append([]int{pid}, descendants(pid)...) {
		dir := "/proc/" + strconv.Itoa(pid) + "/fd"
		fds, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			var stat unix.Stat_t
			path := dir + "/" + fd.Name()
			if len(seen) >= maxOpen || unix.Stat(path, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Nlink > 0 {
				continue
			}
			one := file{stat.Dev, stat.Ino}
			if seen[one] {
				continue
			}
			seen[one] = true
			if to, _ := os.Readlink(path); strings.HasPrefix(to, "/memfd:") {
				h.memory += stat.Blocks * blockSize
			} else {
				h.disk += stat.Blocks * blockSize
			}
		}
	}
	return h
}

// maxDescendants bounds what is looked at of a process that forks without end.
const maxDescendants = 4096

// descendants are the processes below one.
func descendants(pid int) (all []int) {
	for next := []int{pid}; len(next) > 0 && len(all) < maxDescendants; {
		below := procfs.Children(next[0])
		all, next = append(all, below...), append(next[1:], below...)
	}
	return all
}
