package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// spawner starts processes from one operating system thread that lives until
// Close. Linux sends the parent-death signal when the *thread* that started a
// process ends, and Go ends threads as it likes.
type spawner struct {
	requests chan spawnRequest
	closing  chan struct{}
	close    sync.Once
	done     chan struct{}

	adopts bool
	mu     sync.Mutex // held while a process is being started
	own    map[int]bool
}

type spawnRequest struct {
	cmd *exec.Cmd
	err chan error
}

// newSpawner makes a spawner; one that adopts ends what its processes leave
// behind, wherever that has gone.
func newSpawner(adopts bool) (*spawner, error) {
	if adopts {
		if err := adopt(); err != nil {
			return nil, fmt.Errorf("becoming the parent of what extensions leave behind: %w", err)
		}
	}
	s := &spawner{
		requests: make(chan spawnRequest),
		closing:  make(chan struct{}),
		done:     make(chan struct{}),
		adopts:   adopts,
		own:      map[int]bool{},
	}
	if adopts {
		for _, pid := range children(os.Getpid()) {
			s.own[pid] = true // whoever became this process had started it
		}
	}
	go s.run()
	return s, nil
}

func (s *spawner) run() {
	defer close(s.done)
	runtime.LockOSThread()
	// Unlocked, the thread outlives this goroutine: a process that could not be
	// killed in time keeps its parent.
	defer runtime.UnlockOSThread()
	for {
		select {
		case r := <-s.requests:
			r.err <- s.spawn(r.cmd)
		case <-s.closing:
			return
		}
	}
}

func (s *spawner) spawn(cmd *exec.Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := cmd.Start()
	if err == nil {
		s.own[cmd.Process.Pid] = true
	}
	return err
}

// Start is cmd.Start on the spawner's thread.
func (s *spawner) Start(cmd *exec.Cmd) error {
	r := spawnRequest{cmd: cmd, err: make(chan error, 1)}
	select {
	case s.requests <- r:
		return <-r.err
	case <-s.done:
		return errStopped
	}
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
		for _, pid := range children(os.Getpid()) {
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

func (s *spawner) Close() {
	s.close.Do(func() { close(s.closing) })
	<-s.done
}
