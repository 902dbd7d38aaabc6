// Package httpcall makes the calls of a platform's HTTP API. After a failure it says whether
// the platform may have processed the request, which decides whether a message can be sent
// again without a mark. It is for extensions that are channels.
package httpcall

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// Timeout is how long a call without files may take.
const Timeout = 30 * time.Second

const (
	// idleTimeout closes connections before the server does: a request on a connection
	// that is being closed has an unknown outcome.
	idleTimeout  = 45 * time.Second
	maxIdleConns = 256
	maxAnswer    = 16 << 20
)

// NewTransport returns a transport for many concurrent calls of one host.
func NewTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		MaxIdleConns:        maxIdleConns,
		MaxIdleConnsPerHost: maxIdleConns,
		IdleConnTimeout:     idleTimeout,
		TLSHandshakeTimeout: 10 * time.Second,
	}
}

// Error is the error of a call that the API did not answer.
type Error struct {
	Status int  // of a response that is not the API's, as from a proxy; 0: none came
	Sent   bool // the platform may have processed the request
	Err    error
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("the server answered with status %d %s", e.Status, http.StatusText(e.Status))
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Do sends a request and reads the whole response, whose body is closed. Its errors are of
// type *Error, and do not contain the URL.
func Do(transport http.RoundTripper, req *http.Request) (*http.Response, []byte, error) {
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{
		GetConn:      func(string) { sent.Store(false) }, // called again after a dead idle connection
		WroteHeaders: func() { sent.Store(true) },
	}
	resp, err := transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		return nil, nil, &Error{Sent: sent.Load(), Err: err}
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	_ = resp.Body.Close()
	if err != nil {
		return resp, nil, &Error{Sent: true, Err: fmt.Errorf("read response: %w", err)}
	}
	return resp, answer, nil
}
