// Package clock tells the time of a process on which the wall clock may be set
// while it runs.
//
// All times are Unix microseconds. What is stored has the time of the wall
// clock, which people may set, and which starts anywhere on a machine without a
// battery. What this process waits for is measured by the steady time, which
// starts as the wall clock and then advances evenly. So setting the wall clock
// neither ends the time of a handler, nor delays a retry, nor makes waiting
// deliveries too old. Time for which the machine sleeps does not count as
// waiting.
package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// jumpBeyond is how far the wall clock may move against the steady time before
// it counts as having been set.
const jumpBeyond = int64(5 * time.Second / time.Microsecond)

// Clock reads both times. It is safe for concurrent use.
type Clock struct {
	wall   func() time.Time
	system bool // wall is the system's clock
	start  time.Time
	base   int64        // the wall clock at the start
	offset atomic.Int64 // of the wall clock, since it was last set

	mu    sync.Mutex
	jumps []jump // forward, and not taken back
}

// jump is one time that the wall clock was set forward.
type jump struct {
	at int64 // the time that it would have shown
	by int64
}

// New returns a clock that starts now. A wall clock of nil is the system's.
func New(wall func() time.Time) *Clock {
	system := wall == nil
	if system {
		wall = time.Now
	}
	return &Clock{wall: wall, system: system, start: time.Now(), base: wall().UnixMicro()}
}

// Steady is the steady time.
func (c *Clock) Steady() int64 { return c.base + time.Since(c.start).Microseconds() }

// Now is the wall clock.
func (c *Clock) Now() int64 {
	now, _ := c.Both()
	return now
}

// Both are the wall clock and the steady time of one moment.
func (c *Clock) Both() (now, steady int64) {
	wall := c.wall()
	now = wall.UnixMicro()
	if c.system { // one reading has both
		steady = c.base + wall.Sub(c.start).Microseconds()
	} else {
		steady = c.Steady()
	}
	if by := now - steady - c.offset.Load(); by > jumpBeyond || by < -jumpBeyond {
		c.noteJump(now, steady)
	}
	return now, steady
}

// noteJump notes that the wall clock was set.
func (c *Clock) noteJump(now, steady int64) {
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

// Age is how long ago something was stored. The time by which the wall clock was
// set forward since then does not count.
func (c *Clock) Age(stored int64) time.Duration {
	age := c.Now() - stored
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jumps {
		if stored <= j.at {
			age -= j.by
		}
	}
	return time.Duration(age) * time.Microsecond
}

// Due is the steady time at which a stored wait ends that began at since (0:
// unknown) and lasts until the given time. If the wall clock was set back
// meanwhile, so that it shows a time before the wait began, the wait takes its
// full length from now on and no longer.
func (c *Clock) Due(since, until int64) int64 {
	now, steady := c.Both()
	wait := until - now
	if since > 0 && now < since {
		wait = min(wait, until-since)
	}
	return steady + max(wait, 0)
}
