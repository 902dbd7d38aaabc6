// Package alarm waits for many due times with one timer over a heap.
//
// Promises: each id that is set is returned once when its time has come, in the
// order of times, at most 30 seconds late after the clock was set or the machine
// woke up. If the clock is set back by more than a day, all ids are returned, so
// that the caller can correct times computed with the wrong clock. Nothing is
// stored across restarts, and no timer runs while no id is set. Clock is safe
// for concurrent use.
package alarm

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// recheck is the longest sleep: a timer does not notice that the clock was set
// or that the machine was suspended.
const recheck = 30 * time.Second

// Clock returns ids when they are due.
type Clock struct {
	now func() time.Time

	mu      sync.Mutex
	latest  time.Time // the last result of now
	queue   queue
	entries map[string]*entry
	changed chan struct{} // the head of the queue has changed
}

// New returns a clock that reads the time with now.
func New(now func() time.Time) *Clock {
	return &Clock{now: now, entries: make(map[string]*entry), changed: make(chan struct{}, 1)}
}

// Set sets the time of id, replacing its previous time.
func (c *Clock) Set(id string, at time.Time) { c.set(id, at, false) }

// SetEarlier is Set, unless the previous time of id is earlier.
func (c *Clock) SetEarlier(id string, at time.Time) { c.set(id, at, true) }

func (c *Clock) set(id string, at time.Time, onlyEarlier bool) {
	at = at.Round(0) // compare wall clock times
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e, ok := c.entries[id]; {
	case !ok:
		e = &entry{id: id, at: at}
		c.entries[id] = e
		heap.Push(&c.queue, e)
	case onlyEarlier && !at.Before(e.at):
		return
	default:
		e.at = at
		heap.Fix(&c.queue, e.index)
	}
	if c.queue[0].id == id {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
}

// Remove removes id.
func (c *Clock) Remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[id]; ok {
		heap.Remove(&c.queue, e.index)
		delete(c.entries, id)
	}
}

// Len returns the number of ids.
func (c *Clock) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// Run removes the ids whose time has come and calls due with them, at most batch
// at once, until ctx ends. due may set them again. It runs in Run's goroutine, so
// calls of due do not overlap. Run must be called only once.
func (c *Clock) Run(ctx context.Context, batch int, due func(context.Context, []string)) {
	timer := time.NewTimer(recheck)
	defer timer.Stop()
	for {
		ids, wait := c.take(batch)
		if len(ids) > 0 {
			due(ctx, ids)
			if ctx.Err() != nil {
				return
			}
			continue
		}
		timer.Stop()
		var fired <-chan time.Time
		if wait > 0 {
			timer.Reset(wait)
			fired = timer.C
		}
		select {
		case <-fired:
		case <-c.changed:
		case <-ctx.Done():
			return
		}
	}
}

// take removes and returns the due ids, or returns how long to wait; 0 means
// until a change.
func (c *Clock) take(batch int) (ids []string, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now().Round(0)
	if c.latest.Sub(now) > 24*time.Hour {
		for _, e := range c.queue { // all are equal, so it is still a heap
			e.at = now
		}
	}
	c.latest = now
	for len(c.queue) > 0 && len(ids) < batch && !c.queue[0].at.After(now) {
		e := heap.Pop(&c.queue).(*entry)
		delete(c.entries, e.id)
		ids = append(ids, e.id)
	}
	if len(ids) > 0 || len(c.queue) == 0 {
		return ids, 0
	}
	return nil, min(c.queue[0].at.Sub(now), recheck)
}

type entry struct {
	id    string
	at    time.Time
	index int
}

// queue is a heap with the earliest entry first.
type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue) Push(x any) {
	e := x.(*entry)
	e.index = len(*q)
	*q = append(*q, e)
}

func (q *queue) Pop() any {
	old := *q
	last := len(old) - 1
	e := old[last]
	old[last] = nil
	*q = old[:last]
	return e
}
