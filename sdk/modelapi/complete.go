package modelapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// Server is one server of models, with one key.
type Server struct {
	kind   *Kind
	id     string
	config Config
	key    string
	where  string // the address, for the log
	who    string // the server, for error texts: people in chats read them
	own    bool   // the server is the API's own service
	http   *retrying
	slow   *retrying              // its answers may begin as late as a request may take
	chosen atomic.Pointer[string] // the default model among those that the server lists

	life    context.Context // until Close, of what asks for windows
	end     context.CancelFunc
	asks    sync.WaitGroup
	mu      sync.Mutex
	windows map[string]*window // by model
}

// NewServer returns a server. The error is for people.
func NewServer(k *Kind, id string, c Config, key string) (*Server, error) {
	c, err := c.resolved(k, id)
	if err != nil {
		return nil, err
	}
	s := &Server{
		kind: k, id: id, config: c, key: strings.TrimSpace(key), http: newRetrying(c), own: c.BaseURL == k.BaseURL,
		windows: map[string]*window{},
	}
	s.life, s.end = context.WithCancel(context.Background())
	c.IdleTimeout = c.Timeout
	s.slow = newRetrying(c)
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return nil, err
	}
	s.where, s.who = u.Redacted(), words.Sprintf("the server of %s", id)
	switch {
	case s.own:
		s.who = k.Service
	case id == k.ID:
		s.who = words.Sprintf("the model's server")
	}
	return s, nil
}

// Close closes idle connections.
func (s *Server) Close() {
	s.mu.Lock() // nothing asks after it
	s.end()
	s.mu.Unlock()
	s.asks.Wait()
	s.http.close()
	s.slow.close()
}

// Transport is the transport of the server's connections, for tests.
func (s *Server) Transport() *http.Transport {
	return s.http.client.HTTPClient.Transport.(*http.Transport)
}

// Through sends requests through another transport, for tests.
func (s *Server) Through(t http.RoundTripper) { s.http.client.HTTPClient.Transport = t }

// keyMissing reports whether the configuration names a key that is not set.
func (s *Server) keyMissing() bool { return s.key == "" && s.config.Key != "" }

// Causes of cancelled contexts.
var (
	errStalled = errors.New("the stream stalled")
	errTooLong = errors.New("the completion took too long")
)

// Complete runs one completion. It returns a *Failure, or the error of emit or of
// a ctx that the caller ended. An answer that breaks off before anything of it was
// passed on is asked for again.
func (s *Server) Complete(ctx context.Context, r *sdk.CompleteRequest, emit func(*sdk.Delta) error) error {
	if s.keyMissing() {
		return failf(Unconfigured, "%s", s.noKey())
	}
	model := r.GetModel()
	if model == "" || model == "default" {
		var err error
		if model, err = s.defaultModel(ctx); err != nil {
			return err
		}
	}
	if !s.config.Sees(model) {
		r = Unseen(r)
	}
	err := s.complete(ctx, r, model, emit)
	if hasImages(r) && refusesImages(err) { // before its answer began; the name of the model is misleading
		if unseen := s.complete(ctx, Unseen(r), model, emit); !refusesImages(unseen) {
			return unseen
		}
	}
	return err
}

// complete runs one completion with a model of the server.
func (s *Server) complete(
	ctx context.Context, r *sdk.CompleteRequest, model string, emit func(*sdk.Delta) error,
) error {
	body, err := s.kind.Encode(r, model, s.own)
	if err != nil {
		return s.explain(ctx, model, err)
	}
	size := len(body) - imageBytes(r)
	window := s.window(ctx, model, size)
	if window > 0 && int64(size/maxTokenBytes) > window {
		return s.refuse(model, window, emit)
	}
	total, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer time.AfterFunc(time.Duration(s.config.Timeout), func() { end(errTooLong) }).Stop()
	for attempt := 0; ; attempt++ {
		passedOn, err := s.attempt(total, model, body, window, emit)
		if _, failed := errors.AsType[*Failure](err); failed && ctx.Err() != nil { // the caller ended it
			return context.Cause(ctx)
		}
		if !passedOn && err != nil && KindOf(err) == TooLong {
			if e := s.tell(model, refused(window, size), emit); e != nil {
				return e
			}
		}
		if err == nil || passedOn || KindOf(err) != Broken || attempt >= *s.config.Retries {
			return err
		}
		select {
		case <-time.After(backoff(minWait, maxWait, attempt, nil)):
		case <-total.Done():
		}
	}
}

// attempt asks once. passedOn reports whether emit got something.
func (s *Server) attempt(
	ctx context.Context, model string, body []byte, window int64, emit func(*sdk.Delta) error,
) (passedOn bool, err error) {
	inner, cancel := withoutCancel(ctx)
	unlink := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	var resp *http.Response
	complete := false
	defer func() {
		unlink()
		if complete {
			go release(resp.Body, cancel)
			return
		}
		cancel(nil)
		if resp != nil {
			_ = resp.Body.Close()
		}
	}()
	resp, err = s.send(inner, http.MethodPost, s.kind.Completions, body)
	if err == nil {
		err = checkContentType(resp.Header.Get("Content-Type"))
	}
	if err != nil {
		return false, s.explain(inner, model, err)
	}
	a := &Answer{emit: emit, model: s.id + "/" + model, window: window, maxCalls: s.config.MaxCalls}
	switch err := s.read(resp.Body, a, cancel); {
	case err == nil:
		complete = true
		return true, nil
	case a.emitErr != nil:
		return true, a.emitErr
	default:
		if e := a.spent(); e != nil {
			return true, e
		}
		return a.started, s.explain(inner, model, err)
	}
}

// maxEvent bounds one event of a stream, in bytes.
const maxEvent = maxText + maxArguments

// read reads an answer to its end.
func (s *Server) read(body io.Reader, a *Answer, cancel context.CancelCauseFunc) error {
	timeout := time.Duration(s.config.IdleTimeout)
	idle := time.AfterFunc(timeout, func() { cancel(errStalled) })
	defer idle.Stop()
	alive := readerFunc(func(b []byte) (int, error) {
		n, err := body.Read(b)
		idle.Reset(timeout)
		return n, err
	})
	for e, err := range sse.Read(alive, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			return err
		}
		done, err := s.kind.Event(a, e.Type, []byte(e.Data))
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	return a.end()
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// send sends one request, with retries. The error of a response that says one is a
// *StatusError.
func (s *Server) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.config.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "text/event-stream")
	}
	s.kind.Headers(r.Header, s.key)
	resp, err := s.http.do(r, body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		defer resp.Body.Close()
		return nil, statusError(resp)
	}
	return resp, nil
}

// withoutCancel returns ctx without its cancellation but with its deadline, so
// that the rest of an answer can be read after complete returns.
func withoutCancel(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	inner, stop := context.WithoutCancel(ctx), func() {}
	if deadline, ok := ctx.Deadline(); ok {
		inner, stop = context.WithDeadline(inner, deadline)
	}
	inner, cancel := context.WithCancelCause(inner)
	return inner, func(cause error) {
		cancel(cause)
		stop()
	}
}

// endTimeout is how long release waits for the end of a complete answer.
const endTimeout = time.Second

// release reads the end of a complete answer, so that its connection can be
// reused. After endTimeout it closes the connection.
func release(body io.Closer, cancel context.CancelCauseFunc) {
	timer := time.AfterFunc(endTimeout, func() { cancel(nil) })
	_ = body.Close()
	timer.Stop()
	cancel(nil)
}
