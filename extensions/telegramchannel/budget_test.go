package telegramchannel

import (
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/internal/seed"
)

// Whenever requests arrive between their begin and their end, never more arrive
// than a bucket of the same size allows that counts arrivals, nor more than burst
// plus what leaks out within any time.
func TestBudgetHoldsAtTheServer(t *testing.T) {
	t.Parallel()
	random := seed.Rand(t)
	for _, b := range []budget{{every: time.Second, burst: 3}, {every: 4 * time.Second, burst: 5},
		{every: time.Second / 30, burst: 30}} {
		now := time.Unix(0, 0)
		window := 20 * b.every // in which no more than burst + 20 may arrive
		var full time.Time     // when the bucket of arrivals is empty
		var arrived []time.Time
		flying, landed, refused := 0, 0, 0
		for range 20_000 {
			now = now.Add(time.Duration(random.Int64N(int64(b.every))))
			switch k := random.IntN(4); {
			case k <= 1 && b.wait(now, 1, 0) == 0:
				b.begin()
				flying++
			case k == 2 && flying > 0:
				flying--
				landed++
				if full.Before(now) {
					full = now
				}
				if full = full.Add(b.every); full.Sub(now) > time.Duration(b.burst)*b.every {
					refused++
				}
				arrived = append(arrived, now)
				if n := len(arrived) - b.burst - 20 - 1; n >= 0 && now.Sub(arrived[n]) < window {
					refused++
				}
			case k == 3 && landed > 0:
				landed--
				b.end(now)
			}
		}
		if refused > 0 || len(arrived) < 1000 {
			t.Errorf("%+v: %d of %d requests are refused", b, refused, len(arrived))
		}
	}
}

func TestBudgetReturnsTheTimeToWait(t *testing.T) {
	t.Parallel()
	b := budget{every: time.Second, burst: 3}
	now := time.Unix(0, 0)
	for _, tc := range []struct {
		n, spare int
		want     time.Duration
	}{{1, 0, 0}, {1, 2, time.Second}, {2, 0, 0}, {3, 0, time.Second}, {4, 0, 2 * time.Second}} {
		b := b
		b.begin()
		if got := b.wait(now, tc.n, tc.spare); got != tc.want {
			t.Errorf("one under way, %d more, %d spare: %s, want %s", tc.n, tc.spare, got, tc.want)
		}
		b.end(now)
		if got := b.wait(now.Add(time.Second/2), tc.n, tc.spare); got != max(0, tc.want-time.Second/2) {
			t.Errorf("half a second after it, %d more, %d spare: %s", tc.n, tc.spare, got)
		}
		if b.idle(now) || !b.idle(now.Add(time.Second)) {
			t.Error("it is idle at the wrong time")
		}
	}
}
