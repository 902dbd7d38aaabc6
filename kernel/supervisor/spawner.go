package supervisor

import (
	"os/exec"
	"runtime"
	"sync"
)

// spawner runs functions that start processes on one operating system thread, which
// lives until Close. Linux sends the parent-death signal when the *thread* that started
// a process ends, and Go ends threads as it likes.
type spawner struct {
	requests chan func()
	// Close ends the thread.
	Close func()
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan func())}
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
	return s
}

// Do calls start on the spawner's thread. It must not be called after Close.
func (s *spawner) Do(start func() error) error {
	result := make(chan error, 1)
	s.requests <- func() { result <- start() }
	return <-result
}

// unobserved are processes of which nothing is known.
type unobserved struct{}

func (unobserved) Start(cmd *exec.Cmd) error { return cmd.Start() }
func (unobserved) Sweep(int)                 {}
func (unobserved) KillMarked(string) []int   { return nil }
func (unobserved) Stopped(int) bool          { return false }
