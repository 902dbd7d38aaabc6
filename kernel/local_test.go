package kernel_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// embedded runs a kernel with one extension of this program, until the test ends.
func embedded(t *testing.T, spec kernel.Spec) *kernel.Kernel {
	t.Helper()
	dir, err := os.MkdirTemp("", "sb") // short: the paths of sockets are
	if err != nil {
		t.Fatal(err)
	}
	k, err := kernel.Open(t.Context(), kernel.Options{
		RunDir: dir, Extensions: []kernel.Spec{spec},
		Store: func() (journal.Store, error) { return sqlite.Open(filepath.Join(dir, "store.db")) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- k.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, k.Close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return k
}

func publish(t *testing.T, k *kernel.Kernel, payload string) {
	t.Helper()
	if _, err := k.Publish("greeter.hello", "", payload); err != nil {
		t.Fatal(err)
	}
}

// What is in this program is started again as a process is, and loses nothing.
func TestExtensionOfThisProgramIsStartedAgain(t *testing.T) {
	t.Parallel()
	heard := make(chan string)
	serve := sdk.Local(
		hclog.NewNullLogger(),
		sdk.Extension{Handle: func(_ context.Context, e sdk.Event) (sdk.Effects, error) {
			heard <- string(e.Payload)
			return nil, nil
		}},
	)
	var starts atomic.Int64
	k := embedded(t, kernel.Spec{
		ID: "greeter", Permissions: kernel.Permissions{Subscribe: []bus.Subscription{{Pattern: "greeter.hello"}}},
		Process: supervisor.Spec{
			Restart: supervisor.Restart{Backoff: time.Millisecond},
			Serve: func(ctx context.Context, l net.Listener) error {
				if starts.Add(1) == 1 {
					return errors.New("not yet")
				}
				return serve(ctx, l)
			},
		},
	})
	publish(t, k, "while it is down")
	if got := <-heard; got != `"while it is down"` {
		t.Errorf("it heard %s", got)
	}
	if starts.Load() != 2 {
		t.Errorf("it was started %d times", starts.Load())
	}
}

// Applying another configuration starts an extension again, and the same one
// leaves it alone.
func TestApplyExchangesOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	configs := make(chan string, 10)
	spec := func(config string) kernel.Spec {
		return kernel.Spec{
			ID:          "greeter",
			Config:      []byte(config),
			Permissions: kernel.Permissions{Subscribe: []bus.Subscription{{Pattern: "greeter.hello"}}},
			Process: supervisor.Spec{Serve: sdk.Local(hclog.NewNullLogger(), sdk.Extension{
				Start: func(_ context.Context, k *sdk.Kernel) error {
					var c struct{ Name string }
					err := k.Config(&c)
					configs <- c.Name
					return err
				},
				Handle: func(context.Context, sdk.Event) (sdk.Effects, error) { return nil, nil },
			})},
		}
	}
	first := spec(`{"name":"one"}`)
	k := embedded(t, first)
	if got := <-configs; got != "one" {
		t.Errorf("it starts with %q", got)
	}
	for _, next := range []kernel.Spec{first, spec(`{"name":"two"}`)} {
		if err := k.Apply([]kernel.Spec{next}, kernel.Settings{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-configs; got != "two" {
		t.Errorf("it goes on with %q", got)
	}
	err := k.Apply([]kernel.Spec{first, first}, kernel.Settings{})
	if !errors.Is(err, contract.ErrInvalid) || !strings.Contains(err.Error(), "greeter") {
		t.Errorf("two with one id: %v", err)
	}
}

// What an extension is not granted is refused to one of this program, too.
func TestExtensionOfThisProgramHasItsGrantsOnly(t *testing.T) {
	t.Parallel()
	refused := make(chan error, 1)
	k := embedded(t, kernel.Spec{
		ID: "greeter", Permissions: kernel.Permissions{Subscribe: []bus.Subscription{{Pattern: "greeter.hello"}}},
		Process: supervisor.Spec{Serve: sdk.Local(hclog.NewNullLogger(), sdk.Extension{
			Start: func(ctx context.Context, k *sdk.Kernel) error {
				_, err := k.Commit(ctx, sdk.Publish("system.user.notify", "hello"))
				refused <- err
				return nil
			},
			Handle: func(context.Context, sdk.Event) (sdk.Effects, error) { return nil, nil },
		})},
	})
	if err := <-refused; !errors.Is(err, contract.ErrDenied) {
		t.Errorf("publishing what is not granted: %v", err)
	}
	publish(t, k, "the kernel itself may")
}
