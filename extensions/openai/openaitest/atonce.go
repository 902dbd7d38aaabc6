package openaitest

import "sync"

// MostAtOnce returns the most requests that were running at the same time. A
// request counts as finished before its client receives the end of the answer.
func (s *Server) MostAtOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// underway counts a request until the returned function is called.
func (s *Server) underway() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running++
	s.most = max(s.most, s.running)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running--
	})
}
