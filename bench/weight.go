package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// weight breaks down the idle memory: PSS of each process, by kind of mapping.
func weight(b *bench) error {
	d, err := b.warmBed()
	if err != nil {
		return err
	}
	defer d.close()
	time.Sleep(rest + 10*time.Second) //nolint:forbidigo // measures an idle process
	return weigh(d)
}

// weigh prints the table.
func weigh(d *bed) error {
	total := map[string]int64{}
	for _, pid := range d.tree() {
		kinds, err := mapped(pid)
		if err != nil {
			return err
		}
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		name := strings.Join(strings.Fields(strings.ReplaceAll(string(command), "\x00", " "))[1:], " ")
		table(fmt.Sprintf("%s (%d threads)", cmp.Or(name, "?"), len(threads(pid))), kinds)
		for kind, kib := range kinds {
			total[kind] += kib
		}
	}
	table("all", total)
	return nil
}

func table(title string, kinds map[string]int64) {
	sum := int64(0)
	for _, kib := range kinds {
		sum += kib
	}
	fmt.Printf("%s: %.2f MiB\n", title, float64(sum)/1024)
	byWeight := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int { return cmp.Compare(kinds[b], kinds[a]) })
	for _, kind := range byWeight {
		if kinds[kind] >= 16 {
			fmt.Printf("  %8.2f MiB  %s\n", float64(kinds[kind])/1024, kind)
		}
	}
}

func threads(pid int) []string {
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	return all
}

// mapped returns the PSS of a process in KiB, by kind of mapping.
func mapped(pid int) (map[string]int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return nil, err
	}
	self, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return nil, err
	}
	kinds, kind := map[string]int64{}, ""
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		switch {
		case strings.Contains(fields[0], "-"):
			kind = kindOf(fields, self)
		case fields[0] == "Pss:":
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return nil, err
			}
			kinds[kind] += kib
		}
	}
	return kinds, nil
}

// kindOf returns the kind of a mapping by its header.
func kindOf(fields []string, self string) string {
	begin, _, _ := strings.Cut(fields[0], "-")
	address, _ := strconv.ParseUint(begin, 16, 64)
	name := ""
	if len(fields) > 5 {
		name = fields[5]
	}
	switch {
	case name == self && fields[1] == "r-xp":
		return "program: code"
	case name == self && fields[1] == "r--p":
		return "program: constants, tables of functions"
	case name == self:
		return "program: variables with a value"
	case strings.HasSuffix(name, "-shm"), strings.HasSuffix(name, "-wal"), strings.HasSuffix(name, ".db"):
		return "store: index of its log"
	case strings.Contains(name, ".so"):
		return "shared libraries"
	case strings.HasPrefix(name, "[stack"):
		return "stack of the first thread"
	case name != "" && !strings.HasPrefix(name, "[anon"):
		return name
	case address < 1<<32:
		return "program: variables without a value"
	default:
		return "anonymous: Go's heap, stacks and records; SQLite's memory"
	}
}
