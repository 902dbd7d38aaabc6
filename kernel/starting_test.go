package kernel

import (
	"slices"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
)

// Who calls a tool, or asks a model, between two processes of an extension waits
// for the next one. It is not told that there is none.
func TestWhatComesBackByItselfIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status         supervisor.Status
		arrives, comes bool
	}{
		"starting":                    {status: supervisor.Status{State: supervisor.Starting}, arrives: true, comes: true},
		"fell while it started":       {status: supervisor.Status{State: supervisor.BackingOff, RetryAt: time.Now().Add(time.Second)}, arrives: true, comes: true},
		"falls again and again":       {status: supervisor.Status{State: supervisor.BackingOff, RetryAt: time.Now().Add(time.Hour)}, comes: true},
		"waits for its last process":  {status: supervisor.Status{State: supervisor.Inactive, Between: supervisor.Starting}, arrives: true, comes: true},
		"has stopped with the kernel": {status: supervisor.Status{State: supervisor.Inactive, Between: supervisor.Stopping}, comes: true},
		"stays away":                  {status: supervisor.Status{State: supervisor.Inactive}},
		"has failed":                  {status: supervisor.Status{State: supervisor.Failed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &Kernel{
				plan: planOf(
					t,
					Spec{ID: "memory", Provides: Provides{Tools: true}},
					Spec{ID: "openai", Provides: Provides{Models: []string{"openai/*"}}},
				),
				status:    map[string]supervisor.Status{"memory": tt.status, "openai": tt.status},
				described: map[string]offer{},
			}
			s := k.snapshot()
			if got := slices.Contains(s.Starting, "memory"); got != tt.arrives {
				t.Errorf("its tools arrive: %t", got)
			}
			if got := directory.Transient(s.Provider("openai").State); got != tt.comes {
				t.Errorf("it is waited for: %t", got)
			}
		})
	}
}
