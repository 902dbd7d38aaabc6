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

// usageOf returns the usage of a process and, on request, of its descendants.
func usageOf(pid int, withDescendants bool) (used, error) {
	own, err := residentOf(pid)
	if err != nil {
		return used{}, err
	}
	u := used{memory: own.anonymous + own.shared + own.files, processes: 1, threads: own.threads}
	if !withDescendants {
		return u, nil
	}
	for _, child := range descendants(pid) {
		if r, err := residentOf(child); err == nil {
			u.memory += r.anonymous + r.shared // its files are counted above, or belong to the system
			u.processes++
			u.threads += r.threads
		}
	}
	return u, nil
}

// resident is the memory of a process in bytes, and its threads.
type resident struct {
	anonymous, files int64
	shared           int64 // this process's part of memory shared with others
	threads          int
}

// manyShared is the size of shared memory above which a process's part is looked up.
const manyShared = 1 << 20

func residentOf(pid int) (r resident, err error) {
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

// fieldsOf reads the numbers in a file of /proc/<pid> with lines "name: number".
func fieldsOf(pid int, file string) (map[string]int64, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	if err != nil {
		return nil, fmt.Errorf("read the usage of process %d: %w", pid, err)
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

// maxOpen bounds the number of open files checked.
const maxOpen = 16 << 10

// unlinkedOf returns the size of open files that were deleted or never had a name,
// of a process and its descendants.
func unlinkedOf(pid int) (u unlinked) {
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
			if len(seen) >= maxOpen || unix.Stat(path, &stat) != nil ||
				stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Nlink > 0 {
				continue
			}
			one := file{stat.Dev, stat.Ino}
			if seen[one] {
				continue
			}
			seen[one] = true
			if to, _ := os.Readlink(path); strings.HasPrefix(to, "/memfd:") {
				u.memory += stat.Blocks * blockSize
			} else {
				u.disk += stat.Blocks * blockSize
			}
		}
	}
	return u
}

// maxDescendants bounds the work for a process that forks endlessly.
const maxDescendants = 4096

// descendants returns the descendants of a process, breadth first.
func descendants(pid int) (all []int) {
	for next := []int{pid}; len(next) > 0 && len(all) < maxDescendants; {
		children := procfs.Children(next[0])
		all, next = append(all, children...), append(next[1:], children...)
	}
	return all
}
