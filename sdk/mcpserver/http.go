package mcpserver

import (
	"context"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type requestKey struct{}

// Handler serves the client over streamable HTTP, without sessions: a request needs nothing
// that an earlier one left, so clients don't notice a restart of this process. All
// requests count as the client's. Requests that wait for a person or for changes end with the
// client's connection and with closing, a context that ends when this process begins to stop.
func (s *Server) Handler(closing context.Context) http.Handler {
	s.closing = closing
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp },
		&mcp.StreamableHTTPOptions{Stateless: true, Logger: s.Log, DisableLocalhostProtection: true})
	var mu sync.Mutex
	listeners := 0
	stop := func() {}
	watch := func(by int) { // while clients listen
		mu.Lock()
		defer mu.Unlock()
		listeners += by
		switch {
		case by > 0 && listeners == 1:
			ctx, cancel := context.WithCancel(closing)
			stop = cancel
			go s.watch(ctx)
		case listeners == 0:
			stop()
		}
	}
	s.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "subscriptions/listen" {
				watch(1)
				defer watch(-1)
				waiting, cancel := s.waiting(ctx)
				defer cancel()
				ctx = waiting
			}
			return next(ctx, method, req)
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		known := s.client != nil
		s.mu.Unlock()
		if !known {
			_ = s.refresh(r.Context()) // the answer says why not
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, r.Context())))
	})
}

// waiting returns a context that ends when no one waits for the answer to a call any more.
func (s *Server) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stops := []func() bool{}
	if s.closing != nil {
		stops = append(stops, context.AfterFunc(s.closing, cancel))
	}
	if request, ok := ctx.Value(requestKey{}).(context.Context); ok { // the SDK detaches ctx from it
		stops = append(stops, context.AfterFunc(request, cancel))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
