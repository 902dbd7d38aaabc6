package terminal

// seen remembers the newest ids it was given.
type seen struct {
	limit int
	ids   map[string]struct{}
	order []string
}

func newSeen(limit int) *seen { return &seen{limit: limit, ids: map[string]struct{}{}} }

func (s *seen) has(id string) bool {
	_, ok := s.ids[id]
	return ok
}

func (s *seen) add(id string) {
	if s.has(id) {
		return
	}
	if len(s.order) == s.limit {
		delete(s.ids, s.order[0])
		s.order = s.order[1:]
	}
	s.ids[id] = struct{}{}
	s.order = append(s.order, id)
}
