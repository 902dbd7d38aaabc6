package bus_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// wallClock has the world's bus read a wall clock that the test sets.
func (w *world) wallClock() (set func(by time.Duration)) {
	w.Helper()
	var shift atomic.Int64
	w.tune = func(o bus.Options) bus.Options {
		return o.WithWall(func() time.Time { return time.Now().Add(time.Duration(shift.Load())) })
	}
	w.crash()
	return func(by time.Duration) { shift.Add(int64(by)) }
}

// jumps of the wall clock: what a machine without a battery does once it has
// heard the time, and what a person does by mistake.
var jumps = []time.Duration{time.Hour, 20 * 365 * 24 * time.Hour, -time.Hour, -20 * 365 * 24 * time.Hour}

func TestWallClockThatIsSetEndsNobodysTime(t *testing.T) {
	t.Parallel()
	for _, by := range jumps {
		t.Run(by.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				set := w.wallClock()
				w.subscribe("x", on("a.b")...)
				x := w.attach("x", 10)
				w.publish("a.b", "k/1")
				time.Sleep(plain.AckWait - time.Second)
				set(by)
				w.publish("a.b", "l/1") // has the alarm set anew
				x.wantHeld("k/1", "l/1")
				time.Sleep(900 * time.Millisecond)
				if ended := x.cancelled(); len(ended) != 0 {
					w.Errorf("the time of %q is over", ended)
				}
				time.Sleep(200 * time.Millisecond)
				if ended := x.cancelled(); len(ended) != 1 {
					w.Errorf("the times of %q are over, though one is", ended)
				}
			})
		})
	}
}

func TestWallClockThatIsSetKeepsARetrysTime(t *testing.T) {
	t.Parallel()
	for _, by := range jumps {
		for _, restart := range []bool{false, true} {
			if restart && by > 0 {
				continue // a kernel that was not there when the clock was set takes it for time
			}
			name := by.String()
			if restart {
				name += ", restart"
			}
			t.Run(name, func(t *testing.T) {
				inWorld(t, func(w *world) {
					set := w.wallClock()
					w.subscribe("x", on("a.b")...)
					x := w.attach("x", 10)
					w.publish("a.b", "k/1", "/1")
					x.retry("k/1", time.Minute)
					x.retry("/1", time.Minute)
					x.wantHeld()
					set(by)
					if restart {
						w.crash()
						x = w.attach("x", 10)
					}
					time.Sleep(59 * time.Second)
					x.wantHeld()
					time.Sleep(2 * time.Second)
					x.wantHeld("k/1", "/1")
				})
			})
		}
	}
}

func TestWallClockThatIsSetMakesNothingTooOld(t *testing.T) {
	t.Parallel()
	for _, by := range jumps {
		t.Run(by.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				set := w.wallClock()
				w.subscribe("x", on("a.b")...)
				seqs := w.publish("a.b", "k/1")
				time.Sleep(time.Hour)
				set(by)
				seqs = append(seqs, w.publish("a.b", "l/1")...)
				time.Sleep(2 * time.Hour) // looks for what is old, and for what may be pruned
				for _, seq := range seqs {
					w.wantState(seq, journal.Pending)
				}
				set(-by)
				time.Sleep(2 * time.Hour)
				x := w.attach("x", 10)
				x.wantHeld("k/1", "l/1")
			})
		})
	}
}

func TestAgeCountsOnThoughTheWallClockIsSet(t *testing.T) {
	inWorld(t, func(w *world) {
		set := w.wallClock()
		w.subscribe("x", on("a.b")...)
		before := w.publish("a.b", "k/1")[0]
		time.Sleep(time.Hour)
		set(1000 * time.Hour)
		after := w.publish("a.b", "l/1")[0]
		time.Sleep(plain.MaxAge - time.Hour + 2*time.Minute)
		w.wantState(before, journal.Dead)
		w.wantState(after, journal.Pending)
		time.Sleep(time.Hour)
		w.wantState(after, journal.Dead)
	})
}
