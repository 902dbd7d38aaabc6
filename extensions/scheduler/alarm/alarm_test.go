package alarm

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/internal/seed"
)

// wall is a clock that can be set.
type wall struct{ off atomic.Int64 }

func (w *wall) now() time.Time       { return time.Now().Add(time.Duration(w.off.Load())) }
func (w *wall) jump(d time.Duration) { w.off.Add(int64(d)) }

// bundle runs a clock in a bubble and collects the ids.
type bundle struct {
	*Clock
	wall *wall
	out  chan string
}

func setup(t *testing.T) *bundle {
	t.Helper()
	w := &wall{}
	b := &bundle{Clock: New(w.now), wall: w, out: make(chan string, 100_000)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx, 100, func(_ context.Context, ids []string) {
			for _, id := range ids {
				b.out <- id
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return b
}

func (b *bundle) got() (ids []string) {
	synctest.Wait()
	for {
		select {
		case id := <-b.out:
			ids = append(ids, id)
		default:
			return ids
		}
	}
}

func expect(t *testing.T, b *bundle, want ...string) {
	t.Helper()
	if got := b.got(); !slices.Equal(got, want) {
		t.Fatalf("handed out %q, want %q", got, want)
	}
}

func TestOrderAndChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		start := b.wall.now()
		b.Set("late", start.Add(3*time.Hour))
		b.Set("moved", start.Add(2*time.Hour))
		b.Set("gone", start.Add(time.Hour))
		b.Set("past", start.Add(-time.Hour))
		expect(t, b, "past")
		b.Set("moved", start.Add(time.Minute))
		b.SetEarlier("moved", start.Add(time.Hour))
		b.SetEarlier("late", start.Add(2*time.Minute))
		b.Remove("gone")
		b.Remove("never set")
		time.Sleep(time.Minute - time.Nanosecond)
		expect(t, b)
		time.Sleep(time.Nanosecond)
		expect(t, b, "moved")
		time.Sleep(time.Minute)
		expect(t, b, "late")
		time.Sleep(24 * time.Hour)
		expect(t, b)
		if b.Len() != 0 {
			t.Errorf("%d left", b.Len())
		}
	})
}

func TestClockSetForward(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.Set("a", b.wall.now().Add(24*time.Hour))
		synctest.Wait()
		b.wall.jump(25 * time.Hour)
		time.Sleep(recheck)
		expect(t, b, "a")
	})
}

func TestClockSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.Set("a", b.wall.now().Add(time.Hour))
		synctest.Wait()
		b.wall.jump(-2 * time.Hour)
		time.Sleep(2 * time.Hour)
		expect(t, b)
		time.Sleep(time.Hour)
		expect(t, b, "a")
	})
}

func TestClockSetFarBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.Set("b", b.wall.now().Add(2*time.Hour))
		b.Set("a", b.wall.now().Add(time.Hour))
		synctest.Wait()
		b.wall.jump(-25 * time.Hour)
		time.Sleep(recheck)
		if got := b.got(); len(got) != 2 {
			t.Errorf("handed out %q, want both", got)
		}
	})
}

func TestTenThousand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		start := b.wall.now()
		want := make([]string, 10_000)
		for i := range want {
			want[i] = fmt.Sprintf("s%05d", i)
		}
		for _, i := range seed.Rand(t).Perm(len(want)) {
			b.Set(want[i], start.Add(time.Duration(i)*time.Second))
		}
		time.Sleep(10_000 * time.Second)
		if got := b.got(); !slices.Equal(got, want) {
			t.Errorf("%d handed out, in another order", len(got))
		}
	})
}

// Without entries there is no timer.
func TestSleepsWhileNothingIsSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		readings := 0
		c := New(func() time.Time { readings++; return time.Now() })
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		c.Run(ctx, 1, func(context.Context, []string) { t.Error("something was handed out") })
		if readings > 1 {
			t.Errorf("the clock was read %d times", readings)
		}
	})
}

func BenchmarkSetAmongTenThousand(b *testing.B) {
	c := New(time.Now)
	start := time.Now().Add(time.Hour)
	ids := make([]string, 10_000)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
		c.Set(ids[i], start.Add(time.Duration(i)*time.Second))
	}
	for i := 0; b.Loop(); i++ {
		c.Set(ids[i%len(ids)], start.Add(time.Duration(i*7919%100_000)*time.Second))
	}
}
