package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		first, err := s.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stopped)
		if _, err := s.acquire(ctx); !errors.Is(err, stopped) {
			t.Errorf("acquire with an ended context returns %v", err)
		}
		acquired := make(chan struct{})
		go func() {
			release, err := s.acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			release()
			close(acquired)
		}()
		synctest.Wait()
		select {
		case <-acquired:
			t.Error("two have the only slot")
		default:
		}
		first()
		<-acquired
	})
	for range 1000 { // without a limit none waits
		if _, err := newSlots(0).acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
