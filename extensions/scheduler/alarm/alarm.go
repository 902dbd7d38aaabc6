// Package alarm keeps many due times with one timer over a heap.
//
// Promises: what is set is handed out once its time has come by the clock, at
// the latest 30 seconds after the clock was set or the machine woke up; in the
// order of their times; once for each Set. When the clock is set back by more
// than a day, everything is handed out, so that times that were computed under
// the wrong clock can be corrected. Nothing is kept across a restart,
// and nothing runs while nothing is set. Clock is safe for concurrent use.
package alarm

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// recheck is the longest sleep. A timer does not notice that the clock was set
// or that the machine was suspended.
const recheck = 30 * time.Second

// Clock wakes up for the ids that are due.
type Clock struct {
	now func() time.Time

	mu      sync.Mutex
	latest  time.Time // what now said last
	queue   queue
	entries map[string]*entry
	changed chan struct{} // the head of the queue has become earlier
}

// New makes a clock that reads the time with now.
func New(now func() time.Time) *Clock {
	return &Clock{now: now, entries: make(map[string]*entry), changed: make(chan struct{}, 1)}
}

// Set has id handed out at the given time, instead of when it was before.
func (c *Clock) Set(id string, at time.Time) { c.set(id, at, false) }

// SetEarlier is Set, unless id is handed out before that anyway.
func (c *Clock) SetEarlier(id string, at time.Time) { c.set(id, at, true) }

func (c *Clock) set(id string, at time.Time, onlyEarlier bool) {
	at = at.Round(0) // the wall clock counts
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

// Remove forgets id.
func (c *Clock) Remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[id]; ok {
		heap.Remove(&c.queue, e.index)
		delete(c.entries, id)
	}
}

// Len is how many ids are set.
func (c *Clock) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// Run calls due with the ids whose time has come, at most batch at once, until
// ctx ends. An id that is handed out is no longer set; due sets it again if it
// is to come back. due runs in Run's goroutine, so while it runs nothing else
// is handed out. Run is called once.
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

// take removes what is due, or says how long to wait; zero: for a change.
func (c *Clock) take(batch int) (ids []string, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now().Round(0)
	if c.latest.Sub(now) > 24*time.Hour {
		for _, e := range c.queue { // all equal: still a heap
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

// queue is a heap, the earliest first.
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
