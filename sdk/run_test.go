package sdk

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

func TestRunIsRestartedAfterGrowingPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var calls []time.Duration
		var states []extensionv1.Readiness_State
		begin := time.Now()
		a := &activation{
			kernel: NewKernel(nil, &extensionv1.InitRequest{}, hclog.NewNullLogger()),
			log:    hclog.NewNullLogger(), background: ctx, stop: cancel, ran: make(chan struct{}),
		}
		a.kernel.SetReadiness(Degraded, "half of it")
		a.instance = &instance{ext: Extension{Run: func(ctx context.Context, _ *Kernel) error {
			calls = append(calls, time.Since(begin))
			states = append(states, a.kernel.readiness.now().GetState())
			switch len(calls) {
			case 1:
				return errors.New("no network")
			case 2:
				panic("no network")
			case 9:
				<-ctx.Done()
				return ctx.Err()
			}
			return errors.New("still none")
		}}}
		go a.keepRunning()
		time.Sleep(500 * time.Millisecond)
		if r := a.kernel.readiness.now(); r.GetState() != Offline || r.GetDetail() != "no network" {
			t.Errorf("readiness in the pause: %v", r)
		}
		time.Sleep(10 * time.Minute)
		cancel()
		<-a.ran
		s := time.Second
		if want := []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s, 63 * s, 123 * s,
			183 * s}; !slices.Equal(calls, want) {
			t.Errorf("called at %v, want %v", calls, want)
		}
		for _, state := range states {
			if state != Degraded {
				t.Errorf("readiness while running: %v", state)
			}
		}
	})
}

func TestRunThatReturnsIsNotRestarted(t *testing.T) {
	t.Parallel()
	calls := 0
	a := &activation{background: t.Context(), log: hclog.NewNullLogger(), ran: make(chan struct{})}
	a.instance = &instance{ext: Extension{Run: func(context.Context, *Kernel) error { calls++; return nil }}}
	a.keepRunning()
	if calls != 1 {
		t.Errorf("called %d times", calls)
	}
}
