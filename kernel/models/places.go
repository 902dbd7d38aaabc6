package models

import (
	"container/list"
	"context"
	"sync"
)

// Places bounds the completions that are under way at the same time. Who waits
// is served in the order of asking, but whoever has a place already comes behind
// all who have none. The zero value is ready; it is safe for concurrent use.
type Places struct {
	mu    sync.Mutex
	limit int
	taken int
	held  map[string]int // places by key
	queue list.List      // of *waiter, in the order of asking
}

type waiter struct {
	key  string
	turn chan struct{} // closed when it has a place
}

// Take waits for one of limit places and returns the function that gives it
// back; 0: there is no limit. The key is whom it is for. The limit of the latest
// call is in force. When ctx ends before, nobody waits any more, and nothing is
// left behind.
func (p *Places) Take(ctx context.Context, key string, limit int) (leave func(), err error) {
	p.mu.Lock()
	p.limit = limit
	w := &waiter{key: key, turn: make(chan struct{})}
	at := p.queue.PushBack(w)
	p.admit()
	p.mu.Unlock()
	select {
	case <-w.turn:
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		select {
		case <-w.turn: // at the same moment
			p.leave(key)
		default:
			p.queue.Remove(at)
		}
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.leave(key)
	}), nil
}

// Waiting is how many wait for a place, and how many have one.
func (p *Places) Waiting() (waiting, taken int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Len(), p.taken
}

func (p *Places) leave(key string) {
	p.taken--
	if p.held[key]--; p.held[key] == 0 {
		delete(p.held, key)
	}
	p.admit()
}

// admit gives the free places to those whose turn it is.
func (p *Places) admit() {
	for p.queue.Len() > 0 && (p.limit <= 0 || p.taken < p.limit) {
		next := p.queue.Front()
		for at := next; at != nil; at = at.Next() {
			if p.held[at.Value.(*waiter).key] == 0 {
				next = at
				break
			}
		}
		w := p.queue.Remove(next).(*waiter)
		if p.held == nil {
			p.held = map[string]int{}
		}
		p.taken++
		p.held[w.key]++
		close(w.turn)
	}
}
