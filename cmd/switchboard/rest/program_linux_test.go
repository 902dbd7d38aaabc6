package rest

import (
	"os"
	"testing"
)

func TestOnlyReadOnlyMappingsOfTheProgramAreUnmapped(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][2]uintptr{
		"00400000-01a2b000 r-xp 00000000 fe:01 123 /opt/a b/switchboard":           {0x400000, 0x1a2b000},
		"01a2b000-02000000 r--p 0162b000 fe:01 123 /opt/a b/switchboard":           {0x1a2b000, 0x2000000},
		"02000000-02100000 rw-p 01c00000 fe:01 123 /opt/a b/switchboard":           {},
		"7f0000000000-7f0000010000 r-xp 00000000 fe:01 9 /lib/libc.so.6":           {},
		"7f0000000000-7f0000010000 r-xp 00000000 fe:01 9 /opt/a b/switchboard.old": {},
		"c000000000-c000400000 rw-p 00000000 00:00 0":                              {},
		"": {},
	} {
		start, end, ok := readOnly(line, "/opt/a b/switchboard")
		if got := [2]uintptr{start, end}; got != want || ok != (want != [2]uintptr{}) {
			t.Errorf("%q: %x to %x, %v, want %x", line, start, end, ok, want)
		}
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
