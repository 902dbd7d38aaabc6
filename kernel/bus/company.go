package bus

import "time"

// recently is how long after its last work somebody counts as another.
const recently = 250 * time.Millisecond

// Company notes who is at work: whoever is alone may have what nobody else needs.
// Whoever has it guards it.
type Company struct {
	last             string
	lastAt, othersAt time.Time // when that was, and when somebody else was at work
}

// Note notes that somebody is at work now.
func (c *Company) Note(id string, now time.Time) {
	if id != c.last {
		c.othersAt, c.last = c.lastAt, id
	}
	c.lastAt = now
}

// Alone says whether nobody else was at work lately.
func (c *Company) Alone(id string, now time.Time) bool {
	other := c.lastAt
	if id == c.last {
		other = c.othersAt
	}
	return now.Sub(other) > recently
}
