package clichannel

// recent remembers the newest keys it was given, each with a word.
type recent struct {
	limit int
	words map[string]string
	order []string
}

func newRecent(limit int) *recent { return &recent{limit: limit, words: map[string]string{}} }

func (r *recent) has(key string) bool {
	_, ok := r.words[key]
	return ok
}

func (r *recent) get(key string) (string, bool) {
	w, ok := r.words[key]
	return w, ok
}

func (r *recent) put(key, word string) {
	if !r.has(key) {
		if len(r.order) == r.limit {
			delete(r.words, r.order[0])
			r.order = r.order[1:]
		}
		r.order = append(r.order, key)
	}
	r.words[key] = word
}
