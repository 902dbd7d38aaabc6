package discordchannel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/sdk/httpcall"
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
	return &api{url: base, token: token, limits: newLimits(pace), transport: httpcall.NewTransport()}
}

func (a *api) close() { a.transport.CloseIdleConnections() }

// redact returns the text of an error without the token.
func (a *api) redact(err error) string { return strings.ReplaceAll(err.Error(), a.token, "<token>") }

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
	body   any            // encoded as JSON; nil: none
	form   *httpcall.Form // instead of body
	spare  bool           // made at once, if the limits leave room for others, or not at all
	free   bool           // outside of the limits
}

// do makes a call and decodes its result. It waits a short time for the limits.
func (a *api) do(ctx context.Context, r request, into any) error {
	timeout := httpcall.Timeout
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
		return told, &httpcall.Error{Err: err}
	}
	resp, answer, err := httpcall.Do(a.transport, req) //nolint:bodyclose // it is closed
	if resp != nil {
		told = readRate(resp.Header)
	}
	if unread, ok := errors.AsType[*httpcall.BlobError](err); ok {
		return told, unread
	}
	if err != nil {
		return told, err
	}
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		return a.tooMany(told, resp.Header, answer)
	case resp.StatusCode == http.StatusNoContent:
		return told, nil
	case resp.StatusCode >= http.StatusInternalServerError, len(answer) > 0 && !json.Valid(answer):
		return told, &httpcall.Error{Status: resp.StatusCode, Sent: resp.StatusCode == http.StatusGatewayTimeout}
	case resp.StatusCode >= http.StatusMultipleChoices:
		refused := &refusal{status: resp.StatusCode}
		_ = json.Unmarshal(answer, refused)
		return told, refused
	case into == nil || len(answer) == 0:
		return told, nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return told, &httpcall.Error{Sent: true, Err: fmt.Errorf("decode response: %w", err)}
	}
	return told, nil
}

func (a *api) request(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader
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
	req.Header.Set("Authorization", "Bot "+a.token)
	req.Header.Set("User-Agent", userAgent)
	if r.form != nil {
		return req, r.form.Attach(req)
	}
	req.Header.Set("Content-Type", "application/json")
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
