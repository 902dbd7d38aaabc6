package typing

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestIndicators(t *testing.T) {
	t.Parallel()
	const a, b, every = "anna", "boris", 4 * time.Second
	setup := func(ctx context.Context, act func(context.Context, string) error) (*Indicators[string], *atomic.Int32) {
		var calls atomic.Int32
		ty := New(ctx, every, func(ctx context.Context, p string) error {
			calls.Add(1)
			return act(ctx, p)
		})
		return ty, &calls
	}
	fine := func(context.Context, string) error { return nil }
	t.Run("a quick turn shows nothing", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ty, calls := setup(t.Context(), fine)
			ty.Show(a)
			time.Sleep(Delay / 2)
			ty.Hide(a)
			time.Sleep(time.Minute)
			if calls.Load() != 0 {
				t.Errorf("%d calls", calls.Load())
			}
		})
	})
	t.Run("a long turn renews it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ty, calls := setup(t.Context(), fine)
			ty.Show(a)
			ty.Show(a)
			time.Sleep(Delay + 2*every + time.Second)
			ty.Hide(a)
			time.Sleep(time.Minute)
			if calls.Load() != 3 {
				t.Errorf("%d calls, want 3", calls.Load())
			}
		})
	})
	t.Run("a turn that nobody ends", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ty, calls := setup(t.Context(), fine)
			ty.Show(a)
			time.Sleep(time.Hour)
			if most := int32(Limit/every) + 1; calls.Load() > most {
				t.Errorf("%d calls, want at most %d", calls.Load(), most)
			}
			if synctest.Wait(); len(ty.active) != 0 {
				t.Error("it is remembered")
			}
		})
	})
	t.Run("a chat that refuses", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ty, calls := setup(t.Context(), func(context.Context, string) error { return context.DeadlineExceeded })
			ty.Show(a)
			time.Sleep(time.Minute)
			ty.Show(a)
			if calls.Load() != 1 {
				t.Errorf("%d calls, want 1", calls.Load())
			}
			ty.Hide(a)
		})
	})
	t.Run("a slow call holds no other", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ty, calls := setup(t.Context(), func(ctx context.Context, p string) error {
				if p == a {
					<-ctx.Done()
				}
				return nil
			})
			ty.Show(a)
			ty.Show(b)
			time.Sleep(Delay + time.Second)
			if calls.Load() != 2 {
				t.Errorf("%d calls, want 2", calls.Load())
			}
			ty.Stop()
			ty.Show(a)
			if synctest.Wait(); len(ty.active) != 0 {
				t.Error("shown after stop")
			}
		})
	})
}
