package supervisor

import (
	"math/rand/v2"
	"slices"
	"time"
)

// recovery decides what follows a failure, and keeps the decision.
type recovery struct {
	failures []time.Time   // within the window
	delay    time.Duration // before the last start, without jitter; grows while there are failures

	final   State     // Failed, or Inactive if the policy does not restart what ended by itself; empty: neither
	retryAt time.Time // before it, no start
	timer   *time.Timer
}

// waits reports whether the next start is not due yet.
func (r *recovery) waits() bool { return time.Now().Before(r.retryAt) }

// ready reports whether a start is allowed now.
func (r *recovery) ready() bool { return !r.down() && !r.waits() }

// down reports whether only a person or another Spec can restart it.
func (r *recovery) down() bool { return r.final != "" }

// next counts a failure and returns the delay until the next start, or false: no
// restart.
func (r *recovery) next(now time.Time, policy Restart) (time.Duration, bool) {
	if policy.Policy == Never {
		return 0, false
	}
	r.failures = slices.DeleteFunc(r.failures, func(t time.Time) bool { return now.Sub(t) > policy.Window })
	if len(r.failures) == 0 {
		r.delay = 0
	}
	r.failures = append(r.failures, now)
	if policy.Max >= 0 && len(r.failures) > policy.Max {
		return 0, false
	}
	r.delay = max(1, min(max(2*r.delay, policy.Backoff), policy.MaxBackoff))
	return r.delay/2 + rand.N(r.delay), true //nolint:gosec // jitter
}

// reset forgets all failures.
func (r *recovery) reset() {
	if r.timer != nil {
		r.timer.Stop()
	}
	*r = recovery{}
}
