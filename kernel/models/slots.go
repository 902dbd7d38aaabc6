package models

import (
	"container/list"
	"context"
	"sync"
)

// Slots bounds how many completions run at the same time. Slots go to waiters in
// order of arrival, but first to keys that hold none. The zero value is ready; it
// is safe for concurrent use.
type Slots struct {
	mu    sync.Mutex
	limit int
	taken int
	held  map[string]int // slots by key
	queue list.List      // of *waiter, in order of arrival
}

type waiter struct {
	key   string
	ready chan struct{} // closed when it has a slot
}

// Acquire waits for one of limit slots (0: no limit) and returns the function
// that releases it. The key names the user of the slot. The limit of the latest
// call applies to all. When ctx ends first, Acquire leaves the queue.
func (s *Slots) Acquire(ctx context.Context, key string, limit int) (release func(), err error) {
	s.mu.Lock()
	s.limit = limit
	w := &waiter{key: key, ready: make(chan struct{})}
	at := s.queue.PushBack(w)
	s.admit()
	s.mu.Unlock()
	select {
	case <-w.ready:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		select {
		case <-w.ready: // at the same time
			s.release(key)
		default:
			s.queue.Remove(at)
		}
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.release(key)
	}), nil
}

// Counts returns how many wait for a slot, and how many have one.
func (s *Slots) Counts() (waiting, taken int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Len(), s.taken
}

func (s *Slots) release(key string) {
	s.taken--
	if s.held[key]--; s.held[key] == 0 {
		delete(s.held, key)
	}
	s.admit()
}

// admit gives the free slots to the next waiters.
func (s *Slots) admit() {
	for s.queue.Len() > 0 && (s.limit <= 0 || s.taken < s.limit) {
		next := s.queue.Front()
		for at := next; at != nil; at = at.Next() {
			if s.held[at.Value.(*waiter).key] == 0 {
				next = at
				break
			}
		}
		w := s.queue.Remove(next).(*waiter)
		if s.held == nil {
			s.held = map[string]int{}
		}
		s.taken++
		s.held[w.key]++
		close(w.ready)
	}
}
