package openaitest

import "sync"

// MostAtOnce is how many requests have been under way at the same time, at most.
// One is over before its client can know that it is.
func (s *Server) MostAtOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// underway counts a request until the function that it returns is called first.
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
