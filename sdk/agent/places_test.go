package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(1)
		first, err := p.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stopped)
		if _, err := p.enter(ctx); !errors.Is(err, stopped) {
			t.Errorf("it gave up with %v", err)
		}
		came := make(chan struct{})
		go func() {
			leave, err := p.enter(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			leave()
			close(came)
		}()
		synctest.Wait()
		select {
		case <-came:
			t.Error("two have the only place")
		default:
		}
		first()
		<-came
	})
	for range 1000 { // without a limit nobody waits
		if _, err := newPlaces(0).enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
