package wire

// Recent remembers the newest keys that were put into it, each with a value. Both
// sides use it to handle a repeated id once.
type Recent struct {
	limit  int
	values map[string]string
	order  []string
}

// NewRecent returns an empty Recent for at most limit keys.
func NewRecent(limit int) *Recent { return &Recent{limit: limit, values: map[string]string{}} }

// Has reports whether key is remembered.
func (r *Recent) Has(key string) bool {
	_, ok := r.values[key]
	return ok
}

// Get returns the value of key.
func (r *Recent) Get(key string) (string, bool) {
	v, ok := r.values[key]
	return v, ok
}

// Put remembers key, and forgets the oldest key if there are too many.
func (r *Recent) Put(key, value string) {
	if !r.Has(key) {
		if len(r.order) == r.limit {
			delete(r.values, r.order[0])
			r.order = r.order[1:]
		}
		r.order = append(r.order, key)
	}
	r.values[key] = value
}
