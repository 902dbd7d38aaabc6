package bus

import "time"

// WithWindows keeps so little in memory that a test reaches what is beyond.
func (o Options) WithWindows(lane, loose, events int) Options {
	o.windows = windows{lane, loose, events}
	return o
}

// WithWall has the bus read another wall clock.
func (o Options) WithWall(now func() time.Time) Options {
	o.wall = now
	return o
}
