package postgres

import (
	"testing"
	"time"
)

// A process that was stopped itself does not take the others for dead.
func TestOnlyWhatIsSeenAges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		looks  []time.Duration // between looks
		beats  []int64
		unseen time.Duration // of the last look
		stale  bool
	}{
		{"it moves", []time.Duration{time.Second, time.Second, time.Second}, []int64{1, 2, 3}, 0, false},
		{"it stands still", []time.Duration{time.Second, time.Second}, []int64{0, 0}, 0, true},
		{"not for long enough", []time.Duration{time.Second}, []int64{0}, 0, false},
		{"no look came", []time.Duration{time.Second, time.Hour}, []int64{0, 0}, time.Hour - lookEvery, false},
		{"it moves again", []time.Duration{time.Second, time.Second, time.Second}, []int64{0, 0, 1}, 0, false},
	} {
		now := time.Now()
		p := &peer{since: now}
		stale := false
		for i, d := range tt.looks {
			now = now.Add(d)
			unseen := time.Duration(0)
			if i == len(tt.looks)-1 {
				unseen = tt.unseen
			}
			stale = p.see(Member{Beat: tt.beats[i]}, now, unseen)
		}
		if stale != tt.stale {
			t.Errorf("%s: stale is %t", tt.name, stale)
		}
	}
}
