package supervisor

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// endless is a stream without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestOutputIsReadAtAPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		r := &pacedReader{endless{}, ctx, rate.NewLimiter(outputRate, outputBurst)}
		read := func(n int64) time.Duration {
			begin := time.Now()
			if _, err := io.CopyN(io.Discard, io.LimitReader(r, n), n); err != nil {
				t.Fatal(err)
			}
			return time.Since(begin).Round(time.Millisecond)
		}
		if took := read(outputBurst); took != 0 {
			t.Errorf("a burst takes %s", took)
		}
		if took := read(10 * outputRate); took != 10*time.Second {
			t.Errorf("ten seconds' worth take %s", took)
		}
		time.Sleep(time.Minute)
		if took := read(outputBurst); took != 0 {
			t.Errorf("after a pause a burst takes %s", took)
		}
		end()
		if took := read(100 * outputBurst); took != 0 {
			t.Errorf("the rest of a process that has ended takes %s", took)
		}
	})
}
