// Package orphans ends what extensions leave behind: processes whose parents have ended,
// and those of a kernel that was killed. On Linux this process becomes the parent of all
// of them, so it must have no other children than those of Start; elsewhere, what has
// left its process group escapes.
package orphans

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/internal/procfs"
)

// Processes implements launch.Processes.
type Processes struct {
	mu  sync.Mutex // held while a process is being started
	own map[int]bool
}

// New makes this process the parent of what its descendants leave behind.
func New() (*Processes, error) {
	if err := adopt(); err != nil {
		return nil, fmt.Errorf("become the parent of orphaned processes: %w", err)
	}
	p := &Processes{own: map[int]bool{}}
	for _, pid := range procfs.Children(os.Getpid()) {
		p.own[pid] = true // started before this program, by what became it with exec
	}
	return p, nil
}

// Start implements launch.Processes.
func (p *Processes) Start(cmd *exec.Cmd) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return explain(cmd, err)
	}
	p.own[cmd.Process.Pid] = true
	return nil
}

// A killed process leaves orphans of its own, so a sweep repeats, at most maxSweeps
// times.
const (
	maxSweeps  = 200
	sweepPause = time.Millisecond
)

// Sweep implements launch.Processes. Nothing else waits for the orphans.
func (p *Processes) Sweep(ended int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.own, ended)
	for range maxSweeps {
		found, left := false, false
		for _, pid := range procfs.Children(os.Getpid()) {
			if p.own[pid] {
				continue
			}
			found = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
			reaped, _ := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			left = left || reaped != pid
		}
		if !found {
			return
		}
		if left {
			time.Sleep(sweepPause)
		}
	}
}

// KillMarked implements launch.Processes.
func (p *Processes) KillMarked(mark string) (killed []int) {
	for pid, environ := range procfs.Environments() {
		if pid != os.Getpid() && strings.Contains(environ, mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			killed = append(killed, pid)
		}
	}
	return killed
}

// Stopped implements launch.Processes.
func (p *Processes) Stopped(pid int) bool { return procfs.Stopped(pid) }
