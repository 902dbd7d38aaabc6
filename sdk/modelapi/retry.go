package modelapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Waits between attempts. If a server asks for more than maxWait, the request
// fails instead.
const (
	minWait     = 500 * time.Millisecond
	maxWait     = 20 * time.Second
	dialTimeout = 10 * time.Second
)

// retrying is the HTTP client, with pooled connections and retries of temporary
// failures. It returns after the header of the response, so it never retries
// after a part of an answer was passed on.
type retrying struct{ client *retryablehttp.Client }

func newRetrying(c Config) *retrying {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	return &retrying{client: &retryablehttp.Client{
		HTTPClient: &http.Client{CheckRedirect: refuseRedirects, Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           dialer.DialContext,
			TLSHandshakeTimeout:   dialTimeout,
			ResponseHeaderTimeout: time.Duration(c.IdleTimeout),
			ForceAttemptHTTP2:     true,
			MaxIdleConns:          512,
			MaxIdleConnsPerHost:   512,
			IdleConnTimeout:       90 * time.Second,
			WriteBufferSize:       32 << 10, // fits the tools of an agent and a few messages
			DisableCompression:    true,     // of no use for small chunks
		}},
		RetryMax:     *c.Retries,
		RetryWaitMin: minWait,
		RetryWaitMax: maxWait,
		CheckRetry:   checkRetry,
		Backoff:      backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}}
}

var errRedirect = errors.New("the server redirects")

// refuseRedirects returns a redirect as the answer: a key goes to the configured server
// only.
func refuseRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// do is http.Client.Do with retries. The body is a []byte, or a function that returns a
// reader of it.
func (r *retrying) do(req *http.Request, body any) (*http.Response, error) {
	again, err := retryablehttp.FromRequest(req)
	if err != nil {
		return nil, err
	}
	if err := again.SetBody(body); err != nil {
		return nil, err
	}
	resp, err := r.client.Do(again)
	if err != nil {
		return nil, err
	}
	resp.Body = finished{resp.Body}
	if resp.StatusCode >= http.StatusMultipleChoices && resp.StatusCode < http.StatusBadRequest {
		_ = resp.Body.Close()
		return nil, errRedirect
	}
	return resp, nil
}

// maxRest is the most bytes of an answer that Close reads.
const maxRest = 4 << 10

// finished is the body of an answer. Close reads it to its end: a connection with unread
// bytes is not reused.
type finished struct{ io.ReadCloser }

// Close implements io.Closer.
func (f finished) Close() error {
	_, _ = io.CopyN(io.Discard, f.ReadCloser, maxRest)
	return f.ReadCloser.Close()
}

func (r *retrying) close() { r.client.HTTPClient.CloseIdleConnections() }

// checkRetry decides whether another attempt makes sense.
func checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		// After a timeout of the answer, waiting longer is of no use. After a
		// timeout of the connection, another attempt may succeed.
		if n := net.Error(nil); errors.As(err, &n) && n.Timeout() && !dialing(err) {
			return false, nil
		}
		return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	}
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < http.StatusInternalServerError {
		return false, nil
	}
	wait, told := retryAfter(resp)
	if told && wait > maxWait {
		return false, nil
	}
	if deadline, ok := ctx.Deadline(); ok && told && time.Now().Add(wait).After(deadline) {
		return false, nil
	}
	if resp.StatusCode == http.StatusTooManyRequests && quotaUsedUp(resp) {
		return false, nil
	}
	return resp.StatusCode != http.StatusNotImplemented, nil
}

func dialing(err error) bool {
	o := (*net.OpError)(nil)
	return errors.As(err, &o) && o.Op == "dial"
}

// quotaUsedUp reports whether a 429 is permanent because the account has no quota
// left. The body can be read again.
func quotaUsedUp(resp *http.Response) bool {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<10))
	rest := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	return err == nil && outOfMoney(string(body))
}

// backoff returns the wait that the server asks for, else an exponential one with
// jitter over its upper half.
func backoff(least, most time.Duration, attempt int, resp *http.Response) time.Duration {
	if wait, told := retryAfter(resp); told {
		return min(wait, most)
	}
	wait := min(least<<min(attempt, 20), most)
	return wait/2 + rand.N(wait/2+1) //nolint:gosec // spreads retries, guards nothing
}

// retryAfter parses the Retry-After header: seconds, also with a fraction, or a
// date.
func retryAfter(resp *http.Response) (time.Duration, bool) {
	if resp == nil {
		return 0, false
	}
	header := resp.Header.Get("Retry-After")
	if header == "" {
		return 0, false
	}
	if d, err := time.ParseDuration(header + "s"); err == nil && d >= 0 {
		return d, true
	}
	if t, err := http.ParseTime(header); err == nil {
		return max(0, time.Until(t)), true
	}
	return 0, false
}
