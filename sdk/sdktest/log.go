package sdktest

import (
	"io"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// Logger writes to the test's log until the test is over.
func Logger(t testing.TB) hclog.Logger {
	t.Helper()
	w := &testWriter{t: t}
	t.Cleanup(w.close)
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: w, DisableTime: true})
}

// testWriter is a test's log; a test that is over has none any more.
type testWriter struct {
	mu sync.Mutex
	t  testing.TB
}

var _ io.Writer = (*testWriter)(nil)

func (w *testWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.t != nil {
		w.t.Logf("%s", p[:max(0, len(p)-1)])
	}
	return len(p), nil
}

func (w *testWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t = nil
}
