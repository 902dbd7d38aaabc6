package fair

import "time"

// recent is how long after its last work an extension counts as active.
const recent = 250 * time.Millisecond

// Activity tracks the last active extension, so that a sole user may exceed its
// share. The zero value is ready. It is not safe for concurrent use.
type Activity struct {
	last             string
	lastAt, othersAt time.Time // of the last work, and of the last work of another one
}

// Note notes that an extension works now.
func (a *Activity) Note(id string, now time.Time) {
	if id != a.last {
		a.othersAt, a.last = a.lastAt, id
	}
	a.lastAt = now
}

// Alone reports whether no other extension worked recently.
func (a *Activity) Alone(id string, now time.Time) bool {
	other := a.lastAt
	if id == a.last {
		other = a.othersAt
	}
	return now.Sub(other) > recent
}
