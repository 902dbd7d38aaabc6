package limits

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract/sandbox"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
)

func TestAProcessOverALimitIsKilled(t *testing.T) {
	t.Parallel()
	for alone, killedAfter := range map[bool]time.Duration{false: 11 * time.Second, true: 15 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began, reason := time.Now(), make(chan string, 1)
			ctx, end := context.WithCancel(context.Background())
			defer end()
			launch := Guarded(func(context.Context, supervisor.Launch) (*supervisor.Process, error) {
				return &supervisor.Process{PID: 7, Context: ctx, Sockets: "/s", Kill: func(why string) { reason <- why }}, nil
			}, func(pid int, l sandbox.Limits, disk bool) error {
				if pid == 7 && l.Memory == 30 && l.Sockets == "/s" && time.Since(began) > 10*time.Second {
					return errors.New("it used too much")
				}
				return nil
			})
			l := supervisor.Launch{Spec: supervisor.Spec{Limits: sandbox.Limits{Memory: 30, Alone: alone}}}
			if _, err := launch(ctx, l); err != nil {
				t.Fatal(err)
			}
			if got := <-reason; got != "the process was killed: it used too much" {
				t.Errorf("reason %q", got)
			}
			if after := time.Since(began); after != killedAfter {
				t.Errorf("killed after %s, want %s", after, killedAfter)
			}
		})
	}
}

func TestAProcessWithoutRoomIsNotStarted(t *testing.T) {
	t.Parallel()
	for _, want := range []error{errNoRoom, errors.New("another error")} {
		launch := Guarded(func(context.Context, supervisor.Launch) (*supervisor.Process, error) {
			t.Error("it was started")
			return nil, nil
		}, func(pid int, _ sandbox.Limits, disk bool) error {
			if pid != 0 || !disk {
				t.Errorf("checked with %d, %t", pid, disk)
			}
			return fmt.Errorf("check: %w", want)
		})
		var f supervisor.Failure
		if _, err := launch(t.Context(), supervisor.Launch{}); !errors.As(err, &f) || f.Permanent != errors.Is(want, errNoRoom) {
			t.Errorf("error %v", err)
		}
	}
}

// A process that has ended is not checked any more.
func TestAProcessThatEndedIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(context.Background())
		launch := Guarded(func(context.Context, supervisor.Launch) (*supervisor.Process, error) {
			return &supervisor.Process{PID: 7, Context: ctx}, nil
		}, func(pid int, _ sandbox.Limits, _ bool) error {
			if pid != 0 && ctx.Err() != nil {
				t.Error("checked after its end")
			}
			return nil
		})
		if _, err := launch(ctx, supervisor.Launch{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + time.Millisecond) // between two checks
		end()
		time.Sleep(time.Minute)
	})
}
