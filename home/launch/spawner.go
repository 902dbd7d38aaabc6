package launch

import (
	"errors"
	"runtime"
	"sync"
)

// spawner runs functions that start processes on one operating system thread, which
// lives until close. Linux sends the parent-death signal when the *thread* that started
// a process ends, and Go ends threads as it likes.
type spawner struct {
	requests chan func()
	closed   chan struct{}
	// close ends the thread.
	close func()
}

var errClosed = errors.New("the launcher is closed")

func newSpawner() *spawner {
	s := &spawner{requests: make(chan func()), closed: make(chan struct{})}
	var thread sync.WaitGroup
	thread.Go(func() {
		runtime.LockOSThread()
		// Unlocked, the thread outlives this goroutine: a process that could not be
		// killed in time keeps its parent.
		defer runtime.UnlockOSThread()
		for {
			select {
			case request := <-s.requests:
				request()
			case <-s.closed:
				return
			}
		}
	})
	s.close = sync.OnceFunc(func() {
		close(s.closed)
		thread.Wait()
	})
	return s
}

// do calls start on the spawner's thread.
func (s *spawner) do(start func() error) error {
	result := make(chan error, 1)
	select {
	case s.requests <- func() { result <- start() }:
		return <-result
	case <-s.closed:
		return errClosed
	}
}
