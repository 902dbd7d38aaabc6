package web

import (
	"slices"
	"sync"
	"time"
)

const (
	// recentTime is how long the text of a page is kept for its other parts.
	recentTime = 10 * time.Minute
	// recentBytes is the most text that is kept.
	recentBytes = 4 << 20
)

// recent keeps the texts of pages with several parts, so that these are those of one text,
// and a site is asked once. The zero value is empty.
type recent struct {
	mu  sync.Mutex
	all []kept // the oldest first
}

type kept struct {
	key   string
	text  text
	until time.Time
}

func (r *recent) get(key string) (t text, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire()
	for _, k := range r.all {
		if k.key == key {
			return k.text, true
		}
	}
	return t, false
}

func (r *recent) put(key string, t text) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire()
	r.all = slices.DeleteFunc(r.all, func(k kept) bool { return k.key == key })
	if len(t.parts) > 1 {
		r.all = append(r.all, kept{key, t, time.Now().Add(recentTime)})
	}
	size := 0
	for i, k := range slices.Backward(r.all) {
		if size += len(k.text.Text); size > recentBytes {
			r.all = slices.Delete(r.all, 0, i+1)
			return
		}
	}
}

// expire forgets what is too old.
func (r *recent) expire() {
	now := time.Now()
	r.all = slices.DeleteFunc(r.all, func(k kept) bool { return now.After(k.until) })
}
