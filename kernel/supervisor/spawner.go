package supervisor

import (
	"os/exec"
	"runtime"
	"sync"
)

// spawner starts processes from one operating system thread that lives until
// Close. Linux sends the parent-death signal when the *thread* that started a
// process ends, and Go ends threads as it likes.
type spawner struct {
	requests chan spawnRequest
	closing  chan struct{}
	close    sync.Once
	done     chan struct{}
}

type spawnRequest struct {
	cmd *exec.Cmd
	err chan error
}

func newSpawner() *spawner {
	s := &spawner{
		requests: make(chan spawnRequest),
		closing:  make(chan struct{}),
		done:     make(chan struct{}),
	}
	go s.run()
	return s
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
			r.err <- r.cmd.Start()
		case <-s.closing:
			return
		}
	}
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

func (s *spawner) Close() {
	s.close.Do(func() { close(s.closing) })
	<-s.done
}
