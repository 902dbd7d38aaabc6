package discordchannel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	callTimeout = 30 * time.Second
	// idleTimeout closes connections before the server does: a request on a
	// connection that is being closed has an unknown outcome.
	idleTimeout  = 45 * time.Second
	maxIdleConns = 256
	maxAnswer    = 16 << 20
)

// userAgent has the form that Discord asks for.
const userAgent = "DiscordBot (https://github.com/switchboard-run/switchboard, 1)"

// looksLikeToken reports whether a text has the form of a token: parts that are joined by
// dots.
func looksLikeToken(s string) bool {
	return strings.Contains(strings.Trim(s, "."), ".") && !strings.ContainsFunc(s, func(r rune) bool {
		return !isNameRune(r) && r != '.' && (r < 'A' || r > 'Z')
	})
}

// isNameRune reports whether the name of a slash command may have a character.
func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

// api makes the calls of the REST API, within its limits, and reports whether a failed
// call was sent.
type api struct {
	url       string
	token     string
	transport *http.Transport
	limits    *limits
}

func newAPI(base, token string, pace bool) *api {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &api{url: base, token: token, limits: newLimits(pace), transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		MaxIdleConns:        maxIdleConns,
		MaxIdleConnsPerHost: maxIdleConns,
		IdleConnTimeout:     idleTimeout,
		TLSHandshakeTimeout: 10 * time.Second,
	}}
}

func (a *api) close() { a.transport.CloseIdleConnections() }

// redact returns the text of an error without the token.
func (a *api) redact(err error) string { return strings.ReplaceAll(err.Error(), a.token, "<token>") }

// callError is the error of a call that the API did not answer.
type callError struct {
	status int  // of a response of a proxy in front of the API
	sent   bool // Discord may have processed the request
	err    error
}

func (e *callError) Error() string {
	if e.status != 0 {
		return fmt.Sprintf("the server answered with status %d %s", e.status, http.StatusText(e.status))
	}
	return e.err.Error()
}

func (e *callError) Unwrap() error { return e.err }

// refusal is an error that the API answered with.
type refusal struct {
	status  int
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Errors  json.RawMessage `json:"errors"` // by field
}

func (e *refusal) Error() string {
	text := fmt.Sprintf("%s (status %d, code %d)", e.Message, e.status, e.Code)
	if len(e.Errors) > 0 && len(e.Errors) < 500 {
		text += ": " + string(e.Errors)
	}
	return text
}

// limitedError says that a call has to wait; it was not processed.
type limitedError struct {
	after time.Duration
	all   bool // the limit is the bot's
}

func (e *limitedError) Error() string {
	if e.all {
		return fmt.Sprintf("Discord limits this bot: waiting %s", e.after.Round(time.Millisecond))
	}
	return fmt.Sprintf("Discord limits this channel: waiting %s", e.after.Round(time.Millisecond))
}

// request is one call. Path has an id after each of "channels", "messages" and so on.
type request struct {
	method string
	path   string
	body   any   // encoded as JSON; nil: none
	form   *form // instead of body
	spare  bool  // made at once, if the limits leave room for others, or not at all
	free   bool  // outside of the limits
}

// do makes a call and decodes its result. It waits a short time for the limits.
func (a *api) do(ctx context.Context, r request, into any) error {
	timeout := callTimeout
	if r.form != nil {
		timeout = uploadTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if r.free {
		_, err := a.send(ctx, r, into)
		return err
	}
	leave, err := a.limits.enter(ctx, routeOf(r.method, r.path), r.spare)
	if err != nil {
		return err
	}
	told, err := a.send(ctx, r, into)
	leave(told)
	return err
}

// send makes a call. Told are the limits in the response.
func (a *api) send(ctx context.Context, r request, into any) (told rateInfo, err error) {
	req, err := a.request(ctx, r)
	if err != nil {
		return told, &callError{err: err}
	}
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{
		GetConn:      func(string) { sent.Store(false) }, // called again after a dead idle connection
		WroteHeaders: func() { sent.Store(true) },
	}
	resp, err := a.transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil {
		if unread, ok := errors.AsType[*blobError](err); ok {
			return told, unread
		}
		return told, &callError{sent: sent.Load(), err: err}
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	_ = resp.Body.Close()
	told = readRate(resp.Header)
	if err != nil {
		return told, &callError{sent: true, err: fmt.Errorf("read response: %w", err)}
	}
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		return a.tooMany(told, resp.Header, answer)
	case resp.StatusCode == http.StatusNoContent:
		return told, nil
	case resp.StatusCode >= http.StatusInternalServerError, len(answer) > 0 && !json.Valid(answer):
		return told, &callError{status: resp.StatusCode, sent: resp.StatusCode == http.StatusGatewayTimeout}
	case resp.StatusCode >= http.StatusMultipleChoices:
		refused := &refusal{status: resp.StatusCode}
		_ = json.Unmarshal(answer, refused)
		return told, refused
	case into == nil || len(answer) == 0:
		return told, nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return told, &callError{sent: true, err: fmt.Errorf("decode response: %w", err)}
	}
	return told, nil
}

func (a *api) request(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader
	kind := "application/json"
	if r.form == nil && r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, a.url+r.path, body)
	if err != nil {
		return nil, err
	}
	if r.form != nil {
		if req.ContentLength, err = r.form.size(); err != nil {
			return nil, err
		}
		req.GetBody = r.form.body
		if req.Body, err = r.form.body(); err != nil {
			return nil, err
		}
		kind = "multipart/form-data; boundary=" + r.form.boundary
	}
	req.Header.Set("Authorization", "Bot "+a.token)
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Content-Type", kind)
	return req, nil
}

// tooMany reads a response of status 429.
func (a *api) tooMany(told rateInfo, h http.Header, answer []byte) (rateInfo, error) {
	var body struct {
		RetryAfter float64 `json:"retry_after"`
		Global     bool    `json:"global"`
	}
	known := json.Unmarshal(answer, &body) == nil
	if body.RetryAfter <= 0 {
		body.RetryAfter = max(seconds(h.Get("Retry-After")), 1)
	}
	told.retryAfter = time.Duration(body.RetryAfter * float64(time.Second))
	told.all = body.Global || !known || h.Get("X-RateLimit-Scope") == "global" // not JSON: from a proxy, for all
	return told, &limitedError{after: told.retryAfter, all: told.all}
}

// me returns the bot's user.
func (a *api) me(ctx context.Context) (*user, error) {
	u := &user{}
	return u, a.do(ctx, request{method: http.MethodGet, path: "/users/@me"}, u)
}

// historyPage is the most messages that one call returns.
const historyPage = 100

// history returns messages after one, newest first.
func (a *api) history(ctx context.Context, channel, after string) (all []json.RawMessage, err error) {
	path := "/channels/" + channel + "/messages?limit=" + strconv.Itoa(historyPage)
	if after != "" {
		path += "&after=" + url.QueryEscape(after)
	}
	return all, a.do(ctx, request{method: http.MethodGet, path: path}, &all)
}
