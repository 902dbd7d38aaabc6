package host

import "time"

// Farewell sets how long a process may live on without its event stream.
func (h *Host) Farewell(d time.Duration) { h.farewell = d }
