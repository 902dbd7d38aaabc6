package openaiapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	writeTimeout = 30 * time.Second // for one event
	pingEvery    = 15 * time.Second // keeps proxies from closing a silent connection
)

// stream writes server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController

	mu   sync.Mutex
	sent string // the answer so far
}

// open begins a stream, and keeps it alive until ctx is done.
func open(ctx context.Context, w http.ResponseWriter) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, control: http.NewResponseController(w)}
	_ = s.control.Flush()
	go func() {
		ping := time.NewTicker(pingEvery)
		defer ping.Stop()
		for {
			select {
			case <-ping.C:
				_ = s.write(": waiting\n\n")
			case <-ctx.Done():
				return
			}
		}
	}()
	return s
}

func (s *stream) write(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not all writers of tests have one
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

// event writes one event; its name may be empty.
func (s *stream) event(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	return s.write(name + "data: " + string(text) + "\n\n")
}

// more returns what a text adds to what was sent; empty: nothing that could be added.
func (s *stream) more(text string) string {
	added, more := strings.CutPrefix(text, s.sent)
	if !more || added == "" {
		return ""
	}
	s.sent = text
	return added
}

// rest returns what is still to be sent of the whole answer. If what was sent is not its
// beginning, the whole answer follows it.
func (s *stream) rest(text string) string {
	if strings.TrimSpace(s.sent) == strings.TrimSpace(text) {
		return ""
	}
	if added, more := strings.CutPrefix(text, s.sent); more {
		s.sent = text
		return added
	}
	s.sent += "\n\n" + text
	return "\n\n" + text
}
