package slacktest

import (
	"context"
	"fmt"
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
	PauseInsideAnswer       // the call is processed, the second half of its answer arrives after Release
)

// Fault is a scripted failure. Exactly one of Error, Status, Hang and Break should be set.
type Fault struct {
	Channel    string // only calls for this conversation; empty: all
	Error      string // ok: false with this error; the call is not processed
	Status     int    // an answer with this status; the call is not processed
	RetryAfter int    // with status 429
	Body       string // instead of a JSON answer, as a proxy's error page
	Hang       bool   // no answer until Release or the caller's timeout; then the connection breaks
	Break      Break
}

type planned struct {
	method string
	left   int
	fault  Fault
}

// Refusal is a request that got an error, or no answer.
type Refusal struct {
	Method, Channel, Error string
}

// Fail scripts the fault for the next n calls of the method ("" is any; "upload" and
// "download" are the transfers of files). Faults of one method happen in order.
func (s *Server) Fail(method string, n int, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, planned{method: method, left: n, fault: f})
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

// fault returns the fault of a call, and when it ends.
func (s *Server) fault(method, channel string) (f Fault, release <-chan struct{}, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.faults {
		p := &s.faults[i]
		if p.method != "" && p.method != method || p.fault.Channel != "" && p.fault.Channel != channel {
			continue
		}
		f = p.fault
		if p.left--; p.left <= 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		if f.Hang || f.Break == PauseInsideAnswer {
			if s.hung == nil {
				s.hung = make(chan struct{})
			}
			release = s.hung
		}
		return f, release, true
	}
	return f, nil, false
}

// instead reports whether the fault replaces the call.
func (f Fault) instead() bool {
	return f.Hang || f.Break == BreakBefore || f.Status != 0 || f.Error != ""
}

// happen causes the fault instead of the call.
func (f Fault) happen(w http.ResponseWriter, r *http.Request, release <-chan struct{}) {
	switch {
	case f.Hang:
		select {
		case <-release:
		case <-r.Context().Done():
		}
		reset(w)
	case f.Break == BreakBefore:
		reset(w)
	case f.Error != "":
		answer(w, nil, &refusal{code: f.Error, retryAfter: f.RetryAfter})
	case f.Body != "":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(f.Body))
	default:
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		}
		w.WriteHeader(f.Status)
		_, _ = fmt.Fprintf(w, `{"ok":false,"error":"status %d"}`, f.Status)
	}
}

// pause sends the first half of an answer, and the rest after release.
func pause(ctx context.Context, w http.ResponseWriter, body []byte, release <-chan struct{}) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	select {
	case <-release:
		_, _ = w.Write(body[len(body)/2:])
	case <-ctx.Done():
	}
}

// reset breaks the connection with an RST.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if c, ok := conn.(*gated); ok {
		breakOff(c.Conn)
	}
	_ = conn.Close()
}
