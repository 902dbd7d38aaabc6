package bus

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// jumpBeyond is how far the wall clock may move against the steady one before
// it counts as having been set.
const jumpBeyond = int64(5 * time.Second / time.Microsecond)

// steadyClock is two clocks, both in Unix microseconds. What is written down has
// the time of the wall clock, which people may set, and which begins anywhere on
// a machine without a battery. What is waited for in this process is measured by
// the steady clock, which starts as the wall clock and then goes on evenly: a
// wall clock that is set neither ends the time of a handler, nor holds a retry,
// nor makes what waits too old. Time for which the machine sleeps does not count
// as waiting.
type steadyClock struct {
	wall      func() time.Time
	pretended bool // wall is not the one of the system
	start     time.Time
	base      int64        // the wall clock at the start
	offset    atomic.Int64 // of the wall clock, since it was set last

	mu    sync.Mutex
	jumps []jump // forward, and not taken back
}

// jump is the wall clock being set forward.
type jump struct {
	at int64 // what it would have shown
	by int64
}

func newSteadyClock(wall func() time.Time) *steadyClock {
	pretended := wall != nil
	if !pretended {
		wall = time.Now
	}
	return &steadyClock{wall: wall, pretended: pretended, start: time.Now(), base: wall().UnixMicro()}
}

func (c *steadyClock) steady() int64 { return c.base + time.Since(c.start).Microseconds() }

// steadyAt is steady at a reading of the wall clock, which nearly always is one of
// the steady clock, too.
func (c *steadyClock) steadyAt(wall time.Time) int64 {
	if c.pretended {
		return c.steady()
	}
	return c.base + wall.Sub(c.start).Microseconds()
}

// now is the wall clock.
func (c *steadyClock) now() int64 {
	now, _ := c.both()
	return now
}

// both are the wall clock and the steady one.
func (c *steadyClock) both() (now, steady int64) {
	wall := c.wall()
	now, steady = wall.UnixMicro(), c.steadyAt(wall)
	if by := now - steady - c.offset.Load(); by > jumpBeyond || by < -jumpBeyond {
		c.set(now, steady)
	}
	return now, steady
}

// set notes that the wall clock was set.
func (c *steadyClock) set(now, steady int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := now - steady - c.offset.Load()
	c.offset.Add(by)
	if by > 0 {
		c.jumps = append(c.jumps, jump{at: now - by, by: by})
	}
	for by = -by; by > 0 && len(c.jumps) > 0; {
		last := &c.jumps[len(c.jumps)-1]
		back := min(by, last.by)
		by -= back
		if last.by -= back; last.by <= jumpBeyond {
			c.jumps = c.jumps[:len(c.jumps)-1]
		}
	}
}

// age is how long ago something was written down. What was before the wall
// clock was set forward did not wait for that time.
func (c *steadyClock) age(written int64) time.Duration {
	age := c.now() - written
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jumps {
		if written <= j.at {
			age -= j.by
		}
	}
	return time.Duration(age) * time.Microsecond
}

// due is when a delivery may be handed out again. A wall clock that is behind
// the delivery's own past was set back meanwhile: it waits as long as it was to
// wait, and no longer.
func (c *steadyClock) due(d journal.Delivery) int64 {
	wait := d.NotBefore - c.now()
	if d.StartedAt > 0 && c.now() < d.StartedAt {
		wait = min(wait, d.NotBefore-d.StartedAt)
	}
	return c.steady() + max(wait, 0)
}
