package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/sdk/pause"
)

func TestPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		if !pause.For(ctx, time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("a minute takes %s", time.Since(began))
		}
		moved := make(chan struct{}, 1)
		moved <- struct{}{}
		if began = time.Now(); !pause.Until(ctx, time.Minute, moved) || time.Since(began) != 0 {
			t.Errorf("what has moved is waited for %s", time.Since(began))
		}
		cancel()
		for _, d := range []time.Duration{0, time.Hour} {
			if began = time.Now(); pause.For(ctx, d) || time.Since(began) != 0 {
				t.Errorf("after the end %s takes %s", d, time.Since(began))
			}
		}
	})
	for n, want := range map[int]time.Duration{
		1: 200 * time.Millisecond, 2: 400 * time.Millisecond, 7: 12800 * time.Millisecond, 8: 15 * time.Second,
		1000: 15 * time.Second,
	} {
		if got := pause.Backoff(n); got != want {
			t.Errorf("after %d failures it is %s, want %s", n, got, want)
		}
	}
}
