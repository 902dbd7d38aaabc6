package rest

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapProgram unmaps the pages of the program itself: most of what a start needs,
// nothing needs again. The system keeps them in its file cache while it has room
// and maps one again when it is used, 16 at a time. Failure is harmless.
func unmapProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	for _, m := range unchanged(maps, program) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// unchanged returns the mappings of the file whose pages are all as the file has them:
// they can't be written, and none was. The loader writes to read-only ones of a program
// that it relocates, and a debugger does; those changes would be lost.
func unchanged(smaps io.Reader, file string) (found []mapping) {
	var current *mapping
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		f := strings.Fields(lines.Text())
		switch {
		case len(f) >= 2 && f[0] == "Anonymous:":
			if current != nil && f[1] == "0" {
				found = append(found, *current)
			}
			current = nil
		case len(f) > 0 && !strings.HasSuffix(f[0], ":"):
			current = readOnly(f, file)
		}
	}
	return found
}

// readOnly parses the first line of a mapping; nil: it is not one of the file, or can be
// written.
func readOnly(f []string, file string) *mapping {
	if len(f) < 6 || strings.Contains(f[1], "w") || strings.Join(f[5:], " ") != file {
		return nil
	}
	from, to, _ := strings.Cut(f[0], "-")
	start, err := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	if err != nil || err2 != nil {
		return nil
	}
	return &mapping{uintptr(start), uintptr(end)}
}
