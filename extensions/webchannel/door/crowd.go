package door

import "sync"

// Requests at once. The whole site has 2,048 connections: so that no one can hold them all,
// each has a part, streams included.
const (
	mostOfVisitor = 512 // of one login or token
	mostOfAddress = 256 // of public paths, whose requests show neither
)

// crowd counts the requests that are being answered.
type crowd struct {
	mu  sync.Mutex
	now map[string]int // by who makes them
}

// enter counts a request until leave is called; false: there are too many.
func (c *crowd) enter(who string, most int) (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now[who] >= most {
		return nil, false
	}
	if c.now == nil {
		c.now = map[string]int{}
	}
	c.now[who]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.now[who]--; c.now[who] == 0 {
			delete(c.now, who)
		}
	}, true
}
