package telegramtest

import (
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// Fault is a scripted failure. Exactly one of Status, Hang, Late and Break should be set.
type Fault struct {
	Chat        int64  // only calls for this chat; 0: all
	Status      int    // answer with this status; the call is not processed
	Description string // of the refusal; has a default
	RetryAfter  int    // with status 429
	Body        string // instead of a JSON answer, as a proxy's error page
	Hang        bool   // no answer until Release or the caller's timeout; then the connection breaks
	Late        bool   // the call is processed after Release, also if its caller has gone
	Break       Break
}

func (f Fault) describe() string {
	switch {
	case f.Description != "":
		return f.Description
	case f.Hang:
		return "hung"
	case f.Status == 0:
		return "connection reset"
	case f.Status == http.StatusTooManyRequests:
		return tooMany(f.RetryAfter).description
	}
	return http.StatusText(f.Status)
}

type faults struct {
	mu     sync.Mutex
	queued []planned
	hung   chan struct{}
}

type planned struct {
	method string
	left   int
	fault  Fault
}

// Fail scripts the fault for the next n calls of the method ("" is any).
// Faults of one method happen in order.
func (s *Server) Fail(method string, n int, f Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.queued = append(s.faults.queued, planned{method: strings.ToLower(method), left: n, fault: f})
}

// FailStatus scripts the next n calls of the method to be answered with the status.
func (s *Server) FailStatus(method string, n, status int) { s.Fail(method, n, Fault{Status: status}) }

// Heal removes all faults that have not happened yet, and ends hung calls.
func (s *Server) Heal() {
	s.faults.mu.Lock()
	s.faults.queued = nil
	s.faults.mu.Unlock()
	s.Release()
}

// Release ends the calls that hang, whose connections break, and the pauses of answers.
func (s *Server) Release() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	if s.faults.hung != nil {
		close(s.faults.hung)
		s.faults.hung = nil
	}
}

func (f *faults) take(method string, chat int64) (faultAt, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.queued {
		p := &f.queued[i]
		if (p.method != "" && p.method != method) || (p.fault.Chat != 0 && p.fault.Chat != chat) {
			continue
		}
		at := faultAt{Fault: p.fault}
		if p.left--; p.left <= 0 {
			f.queued = slices.Delete(f.queued, i, i+1)
		}
		if at.Hang || at.Late || at.Break == PauseInsideAnswer {
			if f.hung == nil {
				f.hung = make(chan struct{})
			}
			at.release = f.hung
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
func (f faultAt) instead() bool {
	return f.Hang || f.Break == BreakBefore || f.Status != 0
}

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
		status, body := encode(nil, &apiError{code: f.Status, description: f.describe(), retryAfter: f.RetryAfter})
		write(w, status, body)
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
		_, _ = w.Write(body[:len(body)/2]) //nolint:gosec // JSON for a test
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
