package rules

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel"
)

// A request with the lane of a delivery that was answered breaks the rule, unless its sender
// has cancelled it: then it only came late.
func TestALateRequestThatWasCancelledKeepsTheRule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := services{k: newPlayer(&kernel.Spec{})}
		x.k.lend("one")
		if err := x.lane(t.Context(), "Tools.Call", "one"); err != nil {
			t.Error(err)
		}
		x.k.takeBack("one")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // its cancellation comes last
			synctest.Wait()
			cancel()
		}()
		if err := x.lane(ctx, "Tools.Call", "one"); !errors.Is(err, contract.ErrStale) {
			t.Errorf("a late request: %v", err)
		}
		if noted := x.k.noted("lane"); len(noted) > 0 {
			t.Errorf("a cancelled request is noted: %v", noted)
		}
		err := x.lane(t.Context(), "Tools.Call", "one")
		if noted := x.k.noted("lane"); !errors.Is(err, contract.ErrStale) || len(noted) != 1 {
			t.Errorf("a request that its sender waits for: %v, noted %v", err, noted)
		}
	})
}
