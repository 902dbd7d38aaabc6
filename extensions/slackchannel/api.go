package slackchannel

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"
)

const (
	callTimeout = 30 * time.Second
	// idleTimeout closes connections before the server does: a request on a connection
	// that is being closed has an unknown outcome.
	idleTimeout  = 45 * time.Second
	maxIdleConns = 256
	maxAnswer    = 16 << 20
)

// api is the connection to the Web API. The library makes the calls; api is its HTTP
// client, which reports whether a failed call was sent.
type api struct {
	*slack.Client
	files     *slack.Client // for transfers, which are not kept in memory
	url       string
	tokens    []string
	transport *http.Transport
}

func newAPI(base, botToken, appToken string) *api {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	a := &api{url: base, tokens: []string{botToken, appToken}, transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		MaxIdleConns:        maxIdleConns,
		MaxIdleConnsPerHost: maxIdleConns,
		IdleConnTimeout:     idleTimeout,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   false,
	}}
	a.Client = slack.New(botToken, slack.OptionAPIURL(base), slack.OptionAppLevelToken(appToken),
		slack.OptionHTTPClient(a))
	a.files = slack.New(botToken, slack.OptionAPIURL(base),
		slack.OptionHTTPClient(&http.Client{Transport: a.transport}))
	return a
}

func (a *api) close() { a.transport.CloseIdleConnections() }

// redact returns the text of an error without the tokens.
func (a *api) redact(err error) string {
	text := err.Error()
	for _, token := range a.tokens {
		if token != "" {
			text = strings.ReplaceAll(text, token, "<token>")
		}
	}
	return text
}

// callError is the error of a call that the Web API did not answer.
type callError struct {
	status int  // of an answer from a proxy in front of it
	sent   bool // Slack may have processed the request
	err    error
}

func (e *callError) Error() string {
	if e.status != 0 {
		return fmt.Sprintf("the server answered with status %d %s", e.status, http.StatusText(e.status))
	}
	return e.err.Error()
}

func (e *callError) Unwrap() error { return e.err }

// Do sends a request and reads the whole response. Its errors are of type *callError.
func (a *api) Do(req *http.Request) (*http.Response, error) {
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{
		GetConn:      func(string) { sent.Store(false) }, // called again after a dead idle connection
		WroteHeaders: func() { sent.Store(true) },
	}
	resp, err := a.transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		return nil, &callError{sent: sent.Load(), err: err}
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	_ = resp.Body.Close()
	if err != nil {
		return nil, &callError{sent: true, err: fmt.Errorf("read response: %w", err)}
	}
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable:
		return nil, &callError{status: resp.StatusCode}
	case resp.StatusCode >= http.StatusInternalServerError:
		return nil, &callError{status: resp.StatusCode, sent: true}
	case resp.StatusCode == http.StatusOK && !bytes.HasPrefix(bytes.TrimSpace(answer), []byte("{")):
		return nil, &callError{status: resp.StatusCode, sent: true}
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, nil
}
