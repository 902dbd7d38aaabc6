package modelapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// A context window is how many tokens a request to a model and its answer may have
// together. The configured one counts, else the server is asked, by the first request that
// might not fit, and later ones in the background. Most services don't tell.

const (
	// fits is the size of a request that fits every usual window, in bytes.
	fits = 10_000
	// maxTokenBytes is more than a token has on average in any request: one that exceeds
	// the window by this estimate cannot fit.
	maxTokenBytes = 6
	// windowTimeout bounds one request that asks for a window.
	windowTimeout = 5 * time.Second
	// windowAge is for how long an answer counts, unloadedAge for how long the one that the
	// model is not loaded.
	windowAge   = 10 * time.Minute
	unloadedAge = time.Minute
)

// Tokens is a size of a context window as servers tell it. What is not a plausible number
// becomes 0.
type Tokens int64

// UnmarshalJSON implements json.Unmarshaler.
func (t *Tokens) UnmarshalJSON(b []byte) error {
	const least, most = 256, 1 << 30
	var n float64
	if *t = 0; json.Unmarshal(b, &n) == nil && n >= least && n <= most {
		*t = Tokens(n)
	}
	return nil
}

// Ask makes one request to a server, in the words of an API of its own. The path is below
// the server's root, which is the base URL without its version; body is sent as JSON, nil:
// none. The response is decoded into answer.
type Ask func(ctx context.Context, method, path string, body, answer any) error

// window is what is known of the window of one model.
type window struct {
	tokens int64         // 0: not known
	until  time.Time     // when it is asked for again
	asking chan struct{} // closed when there is an answer; nil: it is not asked for
}

// window returns the context window of a model; 0: not known. A request of that many bytes
// waits for the first answer of the server if it might not fit; well-known services have
// large windows.
func (s *Server) window(ctx context.Context, model string, size int) int64 {
	if n := s.config.Window(model); n > 0 {
		return n
	}
	s.mu.Lock()
	w := s.windows[model]
	if w == nil {
		w = &window{}
		s.windows[model] = w
	}
	if size > fits && w.asking == nil && time.Now().After(w.until) && s.life.Err() == nil {
		w.asking = make(chan struct{})
		s.asks.Go(func() { s.learn(w, model) })
	}
	tokens, asking, wait := w.tokens, w.asking, w.until.IsZero() && size > fits && s.service() == ""
	s.mu.Unlock()
	if asking == nil || !wait {
		return tokens
	}
	select {
	case <-asking:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.tokens
}

// learn asks the server for a window. A window that was known stays so.
func (s *Server) learn(w *window, model string) {
	tokens, tells := s.ask(s.life, model, true)
	s.mu.Lock()
	defer s.mu.Unlock()
	age := windowAge
	if tokens > 0 {
		w.tokens = tokens
	} else if tells {
		age = unloadedAge
	}
	w.until = time.Now().Add(age)
	close(w.asking)
	w.asking = nil
}

// Window returns the context window of a model: the configured one, else that which the
// server tells without loading the model; 0: not known. False: the server tells no windows.
func (s *Server) Window(ctx context.Context, model string) (tokens int64, tells bool) {
	if n := s.config.Window(model); n > 0 {
		return n, true
	}
	if s.keyMissing() {
		return 0, false
	}
	return s.ask(ctx, model, false)
}

// ask asks the server for a window: by its list of models, and by an API of its own if it
// may have one. False: it tells no windows. It gives up at the first request that takes too
// long.
func (s *Server) ask(ctx context.Context, model string, load bool) (tokens int64, tells bool) {
	var list modelList
	if s.request(ctx, windowTimeout, http.MethodGet, s.config.BaseURL+s.kind.Models, nil, &list) != nil {
		return 0, false
	}
	for _, m := range list.models() {
		if m.ID == model && m.Context > 0 {
			return m.Context, true
		}
	}
	if s.kind.Window == nil || s.service() != "" {
		return 0, false
	}
	root := strings.TrimSuffix(s.config.BaseURL, "/v1")
	var slow error
	within := func(timeout time.Duration) Ask {
		return func(ctx context.Context, method, path string, body, answer any) error {
			if slow != nil {
				return slow
			}
			err := s.request(ctx, timeout, method, root+path, body, answer)
			if errors.Is(err, context.DeadlineExceeded) {
				slow = err
			}
			return err
		}
	}
	var loading Ask
	if load {
		loading = within(time.Duration(s.config.IdleTimeout)) // a large model takes long
	}
	n, tells := s.kind.Window(ctx, within(windowTimeout), loading, model)
	return int64(n), tells
}

// request makes one request, without retries.
func (s *Server) request(
	ctx context.Context, timeout time.Duration, method, address string, body, answer any,
) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	s.kind.Headers(r.Header, s.key)
	resp, err := s.http.client.HTTPClient.Do(r)
	if err != nil {
		return err
	}
	resp.Body = finished{resp.Body}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: status %d", method, address, resp.StatusCode)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxList)).Decode(answer)
}

// refuse refuses a request that does not fit into a window, and tells the window.
func (s *Server) refuse(model string, window int64, emit func(*sdk.Delta) error) error {
	if err := s.tell(model, window, emit); err != nil {
		return err
	}
	return failf(TooLong, "the conversation is too long for %s, whose context has %d tokens: start a new one with /new, "+
		"or give the model a larger context", model, window)
}

// tell tells the window of a model that does not answer.
func (s *Server) tell(model string, window int64, emit func(*sdk.Delta) error) error {
	return emit(&sdk.Delta{Model: s.id + "/" + model, Context: window})
}

// refused returns the window to assume after the server refused a request as too long: one
// that has room for half of it at most.
func refused(window int64, size int) int64 {
	half := max(int64(size)/maxTokenBytes, 1)
	if window == 0 {
		return half
	}
	return min(window, half)
}
