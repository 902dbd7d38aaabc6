package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/kernel/clock"
)

// TestSetting sets the wall clock in the middle of an hour that something waits:
// it is an hour old afterwards, and due when it would have been.
func TestSetting(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{0, time.Second, time.Hour, -2 * time.Hour, 20 * 365 * 24 * time.Hour, -20 * 365 * 24 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var shift time.Duration
				c := clock.New(func() time.Time { return time.Now().Add(shift) })
				stored, began := c.Now(), c.Steady()
				time.Sleep(30 * time.Minute)
				shift = by
				if now := c.Now(); now != time.Now().Add(by).UnixMicro() {
					t.Errorf("the wall clock is %d", now)
				}
				time.Sleep(30 * time.Minute)
				if passed := time.Duration(c.Steady()-began) * time.Microsecond; passed != time.Hour {
					t.Errorf("the steady time advanced by %s", passed)
				}
				// Small corrections and setting it back are the time of the wall clock.
				want := time.Hour
				if by <= time.Second {
					want += by
				}
				if age := c.Age(stored); age != want {
					t.Errorf("what was stored an hour ago is %s old", age)
				}
				shift = 0
				if age := c.Age(stored); age != time.Hour {
					t.Errorf("with the clock set right, what was stored an hour ago is %s old", age)
				}
			})
		})
	}
}

// TestDue says that a wait ends at its time, and takes its full length at most
// when the wall clock was set back before it began.
func TestDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clock.New(nil)
		now, minute := c.Now(), time.Minute.Microseconds()
		for name, w := range map[string]struct{ since, until, want int64 }{
			"in the future":             {now - minute, now + minute, minute},
			"in the past":               {now - 2*minute, now - minute, 0},
			"begun after now":           {now + 60*minute, now + 61*minute, minute},
			"begun at an unknown time":  {0, now + 60*minute, 60 * minute},
			"begun now, for no time":    {now, now, 0},
			"begun after now, and over": {now + 60*minute, now + 50*minute, 0},
		} {
			if due := c.Due(w.since, w.until) - c.Steady(); due != w.want {
				t.Errorf("%s: due in %d µs, not %d", name, due, w.want)
			}
		}
	})
}
