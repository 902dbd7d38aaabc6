// Package processes reads the processes of a kernel from /proc, so on Linux only. It skips
// processes that end meanwhile.
package processes

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a running process. Its start time tells it from a later one with the same pid.
type Process struct {
	PID     int
	Start   string
	Command string
}

// Below returns the descendants of a process, parents first, without zombies.
func Below(root int) (found []Process) {
	type child struct {
		Process
		zombie bool
	}
	children := map[int][]child{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		s, ok := StatOf(pid)
		if ok {
			children[s.Parent] = append(children[s.Parent], child{Process{PID: pid, Start: s.Start}, s.State == "Z"})
		}
	}
	for parents := []int{root}; len(parents) > 0; parents = parents[1:] {
		for _, c := range children[parents[0]] {
			parents = append(parents, c.PID)
			if !c.zombie {
				c.Command = Command(c.PID)
				found = append(found, c.Process)
			}
		}
	}
	return found
}

// Stat has some fields of /proc/<pid>/stat.
type Stat struct {
	State  string // Z: zombie
	Parent int
	Start  string
}

// StatOf reads the stat of a process; false: it does not exist.
func StatOf(pid int) (s Stat, ok bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Stat{}, false
	}
	_, rest, ok := strings.Cut(string(raw), ") ") // after the name, which may contain anything
	f := strings.Fields(rest)
	if !ok || len(f) < 20 {
		return Stat{}, false
	}
	parent, _ := strconv.Atoi(f[1])
	return Stat{State: f[0], Parent: parent, Start: f[19]}, true
}

// Command returns the command line of a process.
func Command(pid int) string {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.TrimSpace(strings.ReplaceAll(string(raw), "\x00", " "))
}

// Runs reports whether the process has not ended.
func (p Process) Runs() bool {
	s, ok := StatOf(p.PID)
	return ok && s.State != "Z" && s.Start == p.Start
}

// Kill kills the process with -9 and reports whether it was running.
func (p Process) Kill() bool { return p.Runs() && syscall.Kill(p.PID, syscall.SIGKILL) == nil }

// Left returns the processes that still run after a time, and kills them.
func Left(were []Process, patience time.Duration) (still []Process) {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		still = still[:0]
		for _, p := range were {
			if p.Runs() {
				still = append(still, p)
			}
		}
		if len(still) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, p := range still {
		p.Kill()
	}
	return still
}

// PSS returns the memory of a process in KiB, with its part of shared memory; 0: it has ended.
func PSS(pid int) (kib int64) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			kib += n
		}
	}
	return kib
}

// CPU returns the processor time of a process so far, from the scheduler's nanosecond counts
// of its threads.
func CPU(pid int) (total time.Duration) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, task := range tasks {
		raw, err := os.ReadFile(task)
		if err != nil {
			continue
		}
		ns, _ := strconv.ParseInt(strings.Fields(string(raw))[0], 10, 64)
		total += time.Duration(ns)
	}
	return total
}
