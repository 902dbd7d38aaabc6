package host

import (
	"maps"
	"net"
	"slices"
	"time"
)

// StreamLossGrace sets how long a process may run without its event stream.
func (h *Host) StreamLossGrace(d time.Duration) { h.streamLossGrace = d }

// Limit replaces what may be open at a time, before the host serves.
func (h *Host) Limit(requests, streams, connections int, unread int64) {
	h.admission.mu.Lock()
	defer h.admission.mu.Unlock()
	h.admission.limits = limits{requests, streams, connections, unread}
}

// CheckUser replaces the check of who is at the other end of a connection.
func (h *Host) CheckUser(check func(net.Conn) (pid int, err error)) { h.admission.checkUser = check }

// Open counts what is open.
func (h *Host) OpenRequests() (requests, connections int) {
	h.mu.Lock()
	clients := slices.Collect(maps.Values(h.clients))
	h.mu.Unlock()
	h.admission.mu.Lock()
	defer h.admission.mu.Unlock()
	for _, c := range clients {
		requests += c.requests
		connections += c.connections
	}
	return requests, connections
}
