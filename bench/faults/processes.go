package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/bench/processes"
)

// astray returns processes that a shop of this home started and that outlived it: not below
// the kernel, or more than one shop has.
func (h *home) astray() (found []string) {
	_ = ledger.Until("the shop's processes to end", 30*time.Second, func() bool {
		found = nil
		ours := processes.Below(h.PID())
		own := 0
		for _, p := range h.besides() {
			isBelow := slices.ContainsFunc(ours, func(o processes.Process) bool { return o.PID == p.PID })
			if own++; !isBelow || own > 2 {
				found = append(found, fmt.Sprintf("%d %s", p.PID, p.Command))
			}
		}
		return len(found) == 0
	})
	return found
}

// besides returns the processes that shops of this home started.
func (h *home) besides() (found []processes.Process) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		raw, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(raw), h.dir) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		stat, _ := processes.StatOf(pid)
		if p := (processes.Process{PID: pid, Start: stat.Start, Command: processes.Command(pid)}); ledger.Idle(p) {
			found = append(found, p)
		}
	}
	return found
}
