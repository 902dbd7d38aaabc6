//go:build !linux

package limits

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// usageOf returns the usage of a process, without its descendants.
func usageOf(pid int, _ bool) (used, error) {
	memory, err := residentMemory(pid)
	return used{memory: memory, processes: 1}, err
}

// unlinkedOf is not supported.
func unlinkedOf(int) unlinked { return unlinked{} }

// residentMemory returns the resident memory of a process in bytes.
func residentMemory(pid int) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, fmt.Errorf("read the memory usage of process %d with ps: %w", pid, err)
	}
	kib, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the memory usage of process %d with ps: %w", pid, err)
	}
	return kib << 10, nil
}
