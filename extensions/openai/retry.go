package openai

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

// Times between attempts. A server that asks for a longer wait than maxWait is
// not waited for: the person is told.
const (
	minWait     = 500 * time.Millisecond
	maxWait     = 20 * time.Second
	dialTimeout = 10 * time.Second
)

// retrying is the HTTP client: pooled connections, and another attempt after
// failures that may pass. It returns once the response's header is there, so
// nothing of an answer has been passed on while it still retries.
type retrying struct{ client *retryablehttp.Client }

func newRetrying(c Config) *retrying {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	return &retrying{client: &retryablehttp.Client{
		HTTPClient: &http.Client{Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           dialer.DialContext,
			TLSHandshakeTimeout:   dialTimeout,
			ResponseHeaderTimeout: time.Duration(c.IdleTimeout),
			ForceAttemptHTTP2:     true,
			MaxIdleConns:          512,
			MaxIdleConnsPerHost:   512,
			IdleConnTimeout:       90 * time.Second,
			WriteBufferSize:       32 << 10, // the tools of an agent and a few messages
			DisableCompression:    true,     // small chunks, most servers are near or refuse
		}},
		RetryMax:     *c.Retries,
		RetryWaitMin: minWait,
		RetryWaitMax: maxWait,
		CheckRetry:   checkRetry,
		Backoff:      backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}}
}

// Do is http.Client.Do with further attempts.
func (r *retrying) Do(req *http.Request) (*http.Response, error) {
	again, err := retryablehttp.FromRequest(req)
	if err != nil {
		return nil, err
	}
	if body := bodyOf(req.Context()); body != nil {
		if err := again.SetBody(body); err != nil {
			return nil, err
		}
	}
	resp, err := r.client.Do(again)
	if err == nil {
		resp.Body = finished{resp.Body}
	}
	return resp, err
}

// maxRest is the most of an answer that is read so that its connection can be
// used again.
const maxRest = 4 << 10

// finished is an answer that is read to its end when it is closed: the library
// stops at the mark of the last chunk, and a connection with something left to
// read is not used again.
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
		// A request that was sent and not answered in time has been waited for
		// long enough; one that could not be sent has not.
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

// quotaUsedUp looks into a 429: an account without money does not get any by
// waiting. The body can be read again.
func quotaUsedUp(resp *http.Response) bool {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<10))
	rest := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	return err == nil && bytes.Contains(body, []byte("insufficient_quota"))
}

// backoff is what the server asks for, else exponential with full jitter over
// its upper half.
func backoff(least, most time.Duration, attempt int, resp *http.Response) time.Duration {
	if wait, told := retryAfter(resp); told {
		return min(wait, most)
	}
	wait := min(least<<min(attempt, 20), most)
	return wait/2 + rand.N(wait/2+1) //nolint:gosec // spreads retries, guards nothing
}

// retryAfter reads the Retry-After header: seconds, with a fraction or not, or
// a date.
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
