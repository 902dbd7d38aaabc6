package clichannel

// recent remembers the newest keepIDs keys it was given, each with a word.
type recent struct {
	words map[string]string
	order []string
}

func newRecent() *recent { return &recent{words: map[string]string{}} }

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
		if len(r.order) == keepIDs {
			delete(r.words, r.order[0])
			r.order = r.order[1:]
		}
		r.order = append(r.order, key)
	}
	r.words[key] = word
}
