package rest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const smaps = `00400000-01a2b000 r-xp 00000000 fe:01 123 /opt/a b/switchboard
Rss:                 612 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
01a2b000-02000000 r--p 0162b000 fe:01 123 /opt/a b/switchboard
Anonymous:             4 kB
VmFlags: rd mr mw me sd
02000000-02001000 r--p 01c00000 fe:01 123 /opt/a b/switchboard
Anonymous:             0 kB
02001000-02100000 rw-p 01c01000 fe:01 123 /opt/a b/switchboard
Anonymous:             0 kB
7f0000000000-7f0000010000 r-xp 00000000 fe:01 9 /lib/libc.so.6
Anonymous:             0 kB
7f0000010000-7f0000020000 r-xp 00000000 fe:01 9 /opt/a b/switchboard.old
Anonymous:             0 kB
c000000000-c000400000 r--p 00000000 00:00 0
Anonymous:             0 kB
`

func TestOnlyUnchangedMappingsOfTheProgramAreUnmapped(t *testing.T) {
	t.Parallel()
	want := []mapping{{0x400000, 0x1a2b000}, {0x2000000, 0x2001000}}
	if got := unchanged(strings.NewReader(smaps), "/opt/a b/switchboard"); !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// TestChangedPagesAreKept changes a page that is read-only afterwards, as a loader does.
func TestChangedPagesAreKept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, make([]byte, 2*os.Getpagesize()), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, 2*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(b) }()
	mapped := func() []mapping {
		if err := unix.Mprotect(b, unix.PROT_READ); err != nil {
			t.Fatal(err)
		}
		s, err := os.Open("/proc/self/smaps")
		if err != nil {
			t.Skip(err)
		}
		defer s.Close()
		return unchanged(s, file)
	}
	if got := mapped(); len(got) != 1 {
		t.Errorf("as the file has it: %x, want one mapping", got)
	}
	if err := unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	b[0] = 1
	if got := mapped(); len(got) != 0 {
		t.Errorf("after a change: %x, want none", got)
	}
}

// TestProgramRunsOnUnmapped needs code that was mapped and is used again.
func TestProgramRunsOnUnmapped(t *testing.T) {
	t.Parallel()
	for range 100 {
		unmapProgram()
		if _, err := os.ReadFile("/proc/self/maps"); err != nil {
			t.Fatal(err)
		}
	}
}
