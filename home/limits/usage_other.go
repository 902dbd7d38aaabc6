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

// usageOf is what a process uses; those below it are not seen.
func usageOf(pid int, _ bool) (used, error) {
	memory, err := residentMemory(pid)
	return used{memory: memory, processes: 1}, err
}

// hiddenOf is not known.
func hiddenOf(int) hidden { return hidden{} }

// residentMemory is the resident memory of a process in bytes.
func residentMemory(pid int) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, fmt.Errorf("reading the memory use of process %d with ps: %w", pid, err)
	}
	kib, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the memory use of process %d with ps: %w", pid, err)
	}
	return kib << 10, nil
}
