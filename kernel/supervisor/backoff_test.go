package supervisor

import (
	"testing"
	"time"
)

func TestJitter(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for range 20 {
		delay, _ := new(recovery).next(time.Time{}, Restart{}.withDefaults())
		seen[delay] = true
	}
	if len(seen) < 2 {
		t.Error("the delays are all the same")
	}
}
