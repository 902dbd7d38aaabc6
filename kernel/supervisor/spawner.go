package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/internal/procfs"
)

// spawner starts processes from one operating system thread that lives until
// Close. Linux sends the parent-death signal when the *thread* that started a
// process ends, and Go ends threads as it likes.
type spawner struct {
	requests chan func()
	// Close ends the thread.
	Close func()

	adopts bool
	mu     sync.Mutex // held while a process is being started
	own    map[int]bool
}

// newSpawner makes a spawner; with adopts it kills orphans of its processes, in any
// process group.
func newSpawner(adopts bool) (*spawner, error) {
	s := &spawner{requests: make(chan func()), adopts: adopts, own: map[int]bool{}}
	if adopts {
		if err := adopt(); err != nil {
			return nil, fmt.Errorf("become the parent of orphaned processes: %w", err)
		}
		for _, pid := range procfs.Children(os.Getpid()) {
			s.own[pid] = true // started before this program, by what became it with exec
		}
	}
	var thread sync.WaitGroup
	thread.Go(func() {
		runtime.LockOSThread()
		// Unlocked, the thread outlives this goroutine: a process that could not be
		// killed in time keeps its parent.
		defer runtime.UnlockOSThread()
		for request := range s.requests {
			request()
		}
	})
	s.Close = sync.OnceFunc(func() {
		close(s.requests)
		thread.Wait()
	})
	return s, nil
}

// Start is cmd.Start on the spawner's thread. It must not be called after Close.
func (s *spawner) Start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	s.requests <- func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		err := cmd.Start()
		if err == nil {
			s.own[cmd.Process.Pid] = true
		}
		result <- err
	}
	return <-result
}

// Ended notes that a process of Start was reaped, and ends its orphans.
func (s *spawner) Ended(pid int) {
	s.mu.Lock()
	delete(s.own, pid)
	s.mu.Unlock()
	s.sweep()
}

// A killed process leaves orphans of its own, so a sweep repeats, at most maxSweeps
// times.
const (
	maxSweeps  = 200
	sweepPause = time.Millisecond
)

// sweep kills the orphans that this process has adopted: processes of extensions
// whose parents have ended. Nothing else waits for them.
func (s *spawner) sweep() {
	if !s.adopts {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for range maxSweeps {
		found, left := false, false
		for _, pid := range procfs.Children(os.Getpid()) {
			if s.own[pid] {
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
