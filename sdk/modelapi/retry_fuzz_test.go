package modelapi

import (
	"net/http"
	"testing"
)

// For every Retry-After header, the wait is between zero and the maximum.
func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "1", "0.5", "-1", "1e9", "99999999999999999999", "NaN", "1h",
		"Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, header string, attempt int) {
		resp := &http.Response{Header: http.Header{"Retry-After": {header}}}
		if told, ok := retryAfter(resp); ok && told < 0 {
			t.Errorf("%q means %s", header, told)
		}
		if wait := backoff(minWait, maxWait, max(attempt, 0), resp); wait < 0 || wait > maxWait {
			t.Errorf("after %q it waits for %s", header, wait)
		}
	})
}
