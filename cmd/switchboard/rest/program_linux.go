package rest

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapProgram unmaps the pages of the program itself: most are needed only by the start.
// The system keeps them in its file cache while it has room, and maps them again on use, 16
// at a time. Failure is harmless.
func unmapProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		if start, end, ok := readOnly(lines.Text(), program); ok {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED)
		}
	}
}

// readOnly parses a line of /proc/self/maps. It reports a mapping of the file that
// can't be written, so that each of its pages is as the file has it.
func readOnly(line, file string) (start, end uintptr, ok bool) {
	f := strings.Fields(line)
	if len(f) < 6 || strings.Contains(f[1], "w") || strings.Join(f[5:], " ") != file {
		return 0, 0, false
	}
	from, to, _ := strings.Cut(f[0], "-")
	a, err := strconv.ParseUint(from, 16, 64)
	b, err2 := strconv.ParseUint(to, 16, 64)
	return uintptr(a), uintptr(b), err == nil && err2 == nil
}
