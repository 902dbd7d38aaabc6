package supervisor

import (
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// recovery decides what follows a failure, and keeps the decision.
type recovery struct {
	failures []time.Time // within the window
	delays   *backoff.ExponentialBackOff

	failed  bool      // for good
	ended   bool      // ended by itself, and the policy does not restart it
	retryAt time.Time // before it, no start
	timer   *time.Timer
}

// waits reports whether the next start is not due yet.
func (r *recovery) waits() bool { return time.Now().Before(r.retryAt) }

// ready reports whether a start is allowed now.
func (r *recovery) ready() bool { return !r.down() && !r.waits() }

// down reports whether only a person or another Spec can restart it.
func (r *recovery) down() bool { return r.failed || r.ended }

// next counts a failure and returns the delay until the next start, or false: no
// restart.
func (r *recovery) next(now time.Time, policy Restart) (time.Duration, bool) {
	if policy.Policy == Never {
		return 0, false
	}
	r.failures = slices.DeleteFunc(r.failures, func(t time.Time) bool { return now.Sub(t) > policy.Window })
	if len(r.failures) == 0 {
		r.delays = nil
	}
	r.failures = append(r.failures, now)
	if policy.Max >= 0 && len(r.failures) > policy.Max {
		return 0, false
	}
	if r.delays == nil {
		r.delays = backoff.NewExponentialBackOff()
		r.delays.InitialInterval = policy.Backoff
		r.delays.MaxInterval = policy.MaxBackoff
		r.delays.Multiplier = 2
	}
	return r.delays.NextBackOff(), true
}

// reset forgets all failures.
func (r *recovery) reset() {
	if r.timer != nil {
		r.timer.Stop()
	}
	*r = recovery{}
}
