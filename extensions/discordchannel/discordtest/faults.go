package discordtest

import (
	"net"
	"net/http"
	"slices"
	"strconv"
)

// Break is the point at which a [Fault] breaks the connection.
type Break int

// Where a connection breaks.
const (
	BreakNever        Break = iota
	BreakBefore             // the call is not processed, and the connection is reset
	BreakAfter              // the call is processed, its answer is lost
	BreakInsideAnswer       // the call is processed, half of its answer arrives
	PauseInsideAnswer       // the call is processed, the second half of its answer arrives after Release
)

// Fault is a scripted failure. Exactly one of Status, Hang and Break should be set.
type Fault struct {
	Channel    string  // only calls for this channel; empty: all
	Status     int     // answer with this status; the call is not processed
	Code       int     // of the refusal
	Message    string  // of the refusal
	RetryAfter float64 // seconds, with status 429
	Global     bool    // with status 429: for the bot
	Body       string  // instead of a JSON answer, as a proxy's error page
	Hang       bool    // no answer until Release or the caller's timeout; then the connection breaks
	Break      Break
}

type planned struct {
	name  string
	left  int
	fault Fault
}

// Fail scripts the fault for the next n calls of a name ("" is any); see [Server.Calls].
// Faults of one name happen in order.
func (s *Server) Fail(name string, n int, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, planned{name, n, f})
}

// Heal removes all faults that have not happened yet, and ends hung calls.
func (s *Server) Heal() {
	s.mu.Lock()
	s.faults = nil
	s.mu.Unlock()
	s.Release()
}

// Release ends the calls that hang, whose connections break, and the pauses of answers.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hung != nil {
		close(s.hung)
		s.hung = nil
	}
}

// takeFault takes the next fault of a call; mu is held.
func (s *Server) takeFault(c *call) (faultAt, bool) {
	for i := range s.faults {
		p := &s.faults[i]
		if p.name != "" && p.name != c.name || p.fault.Channel != "" && p.fault.Channel != c.channel {
			continue
		}
		at := faultAt{Fault: p.fault}
		if p.left--; p.left <= 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		if at.Hang || at.Break == PauseInsideAnswer {
			if s.hung == nil {
				s.hung = make(chan struct{})
			}
			at.release = s.hung
		}
		return at, true
	}
	return faultAt{}, false
}

// faultAt is a fault that is happening to a call.
type faultAt struct {
	Fault
	release <-chan struct{}
}

// instead reports whether the fault replaces the call.
func (f faultAt) instead() bool { return f.Hang || f.Break == BreakBefore || f.Status != 0 }

// happen causes the fault instead of the call.
func (f faultAt) happen(w http.ResponseWriter, r *http.Request) {
	switch {
	case f.Hang:
		select {
		case <-f.release:
		case <-r.Context().Done():
		}
		reset(w)
	case f.Break == BreakBefore:
		reset(w)
	case f.Body != "":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(f.Body))
	default:
		e := refuse(f.Status, f.Code, "%s", f.Message)
		if f.Message == "" {
			e.message = http.StatusText(f.Status)
		}
		e.retry, e.global = f.RetryAfter, f.Global
		status, body := encode(nil, e)
		write(w, status, body, e)
	}
}

// after causes the fault after the call was processed. It reports whether to answer.
func (f faultAt) after(w http.ResponseWriter, r *http.Request, body []byte) bool {
	switch f.Break {
	case PauseInsideAnswer:
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body[:len(body)/2]) //nolint:gosec // data for a test
		_ = http.NewResponseController(w).Flush()
		select {
		case <-f.release:
			_, _ = w.Write(body[len(body)/2:]) //nolint:gosec // data for a test
		case <-r.Context().Done():
		}
		return false
	case BreakAfter:
		reset(w)
		return false
	case BreakInsideAnswer:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(max(100_000, 2*len(body))))
		_, _ = w.Write(body[:len(body)/2]) //nolint:gosec // data for a test
		_ = http.NewResponseController(w).Flush()
		reset(w)
		return false
	default:
		return true
	}
}

// reset breaks the connection with an RST.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
