package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// eventStream is the media type of server-sent events.
const eventStream = "text/event-stream"

const (
	writeTimeout = 30 * time.Second // for one frame: a client that reads slower is disconnected
	reconnect    = 1000             // milliseconds until a client comes back
)

// streaming is the response of an operation that may write a stream.
type streaming struct{ Body func(huma.Context) }

// sse is a stream of server-sent events to a client.
type sse struct {
	w    http.ResponseWriter
	http *http.ResponseController
}

func newSSE(c huma.Context) *sse {
	_, w := humago.Unwrap(c)
	w.Header().Set("Content-Type", eventStream)
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not hold it back
	s := &sse{w, http.NewResponseController(w)}
	_ = s.http.SetReadDeadline(time.Time{}) // a recorder has none
	return s
}

// begin opens the stream after the event with an id, so that a client that is disconnected
// before the first one comes back with that.
func (s *sse) begin(id int64) error {
	return s.write(fmt.Sprintf("retry: %d\nid: %d\n\n", reconnect, id))
}

// send sends an event; id 0: none, event "": a message, as browsers call it.
func (s *sse) send(id int64, event string, data any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(data); err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	head := ""
	if id > 0 {
		head = fmt.Sprintf("id: %d\n", id)
	}
	if event != "" {
		head += "event: " + event + "\n"
	}
	return s.write(head + "data: " + strings.TrimSpace(b.String()) + "\n\n") // JSON has no line break here
}

// beat shows that the stream lives.
func (s *sse) beat() error { return s.write(": \n\n") }

func (s *sse) write(text string) error {
	_ = s.http.SetWriteDeadline(time.Now().Add(writeTimeout)) // a recorder has none
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.http.Flush()
}

// enter takes one of the token's places for a stream or a wait; leave returns it.
func (a *api) enter(v door.Visitor) (leave func(), err error) {
	token := v.User + "\x00" + v.Token
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.streams[token] >= a.Streams {
		return nil, problem(http.StatusTooManyRequests, typeStreams,
			fmt.Sprintf("%d streams and waits are open, which is the limit for a token", a.Streams))
	}
	a.streams[token]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.streams[token]--; a.streams[token] == 0 {
			delete(a.streams, token)
		}
	}, nil
}

// until returns a context that also ends when the extension shuts down.
func (a *api) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(a.Closing, cancel)
	return ctx, func() { stop(); cancel() }
}

// received is what a source yields, or why it ended.
type received[T any] struct {
	value T
	err   error
}

// pump runs a source in the background, until it ends or ctx does. The last value has the
// error with which it ended.
func pump[T any](ctx context.Context, source func(yield func(T) bool) error) <-chan received[T] {
	out := make(chan received[T])
	pass := func(r received[T]) bool {
		select {
		case out <- r:
			return true
		case <-ctx.Done():
			return false
		}
	}
	go func() {
		defer close(out)
		err := source(func(v T) bool { return pass(received[T]{value: v}) })
		if err == nil {
			err = errEnded
		}
		pass(received[T]{err: err})
	}()
	return out
}

var errEnded = fmt.Errorf("%w: the stream has ended", contract.ErrGone)

// relay passes what a source yields to each, with heartbeats between, until the client is
// gone or the visitor may no longer come in, the extension shuts down, the source ends, or each
// returns an error.
func relay[T any](
	ctx context.Context, a *api, v door.Visitor, s *sse, source func(context.Context, func(T) bool) error,
	each func(T) error,
) error {
	ctx, cancel := a.until(ctx)
	defer cancel()
	frames := pump(ctx, func(yield func(T) bool) error { return source(ctx, yield) })
	beats := time.NewTicker(a.Heartbeat)
	defer beats.Stop()
	for {
		var err error
		select {
		case f, open := <-frames:
			if err = f.err; err == nil && open {
				err = each(f.value)
			} else if err == nil {
				err = ctx.Err()
			}
		case <-beats.C:
			if err = s.beat(); err == nil && !a.Still(ctx, v) {
				err = contract.ErrDenied
			}
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// errDone ends a relay that is complete.
var errDone = errors.New("done")

// wantsStream reports whether a request asks for server-sent events.
func wantsStream(accept string) bool { return strings.Contains(accept, eventStream) }

// streamResponse describes a stream in the OpenAPI document.
func streamResponse(about string) *huma.Response {
	return &huma.Response{Description: about, Content: map[string]*huma.MediaType{
		eventStream: {Schema: &huma.Schema{Type: huma.TypeString}},
	}}
}
