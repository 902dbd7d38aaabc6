package host

import "time"

// StreamLossGrace sets how long a process may run without its event stream.
func (h *Host) StreamLossGrace(d time.Duration) { h.streamLossGrace = d }

// Limit replaces what may be open at a time.
func (h *Host) Limit(requests, streams, connections int, unread int64) {
	h.admission.mu.Lock()
	defer h.admission.mu.Unlock()
	h.admission.limits = limits{requests, streams, connections, unread}
}

// Open counts what is open.
func (h *Host) OpenRequests() (requests, connections int) {
	h.admission.mu.Lock()
	defer h.admission.mu.Unlock()
	for _, n := range h.admission.open {
		requests += n
	}
	for _, n := range h.admission.connected {
		connections += n
	}
	return requests, connections
}
