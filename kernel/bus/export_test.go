package bus

// WithWindows keeps so little in memory that a test reaches what is beyond.
func (o Options) WithWindows(lane, loose, events int) Options {
	o.windows = windows{lane, loose, events}
	return o
}
