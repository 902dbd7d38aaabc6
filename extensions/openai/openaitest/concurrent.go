package openaitest

import "sync"

// MaxConcurrent returns the largest number of requests that ran concurrently. A
// request counts as finished before its client receives the end of the answer.
func (s *Server) MaxConcurrent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maxRunning
}

// begin counts a request as running until the returned function is called.
func (s *Server) begin() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running++
	s.maxRunning = max(s.maxRunning, s.running)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running--
	})
}
