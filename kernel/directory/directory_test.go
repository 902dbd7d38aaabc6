package directory_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

func TestWhatAnAgentMayUse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		grants  []string
		tool    string
		private bool
		want    bool
	}{
		{[]string{"core/*"}, "core/list_agents", false, true},
		{[]string{"core/*"}, "corelike/list", false, false},
		{[]string{"core/list_agents"}, "core/list_agents", false, true},
		{[]string{"core/list"}, "core/list_agents", false, false},
		{[]string{"*"}, "notes/add", false, true},
		{[]string{"*", "notes/*"}, "notes/wipe", true, false},
		{[]string{"notes/wipe"}, "notes/wipe", true, true},
		{nil, "core/list_agents", false, false},
	}
	for _, test := range tests {
		s := &directory.Snapshot{Agents: []directory.Agent{{ID: "a", Spec: &extensionv1.AgentSpec{UsesTools: test.grants}}}}
		tool := &directory.Tool{Name: test.tool, Tool: &extensionv1.Tool{Private: test.private}}
		if got := s.MayUse("a", tool); got != test.want {
			t.Errorf("%v grants %s (private: %v): %v", test.grants, test.tool, test.private, got)
		}
		if s.MayUse("nobody", tool) {
			t.Error("somebody who is no agent may use a tool")
		}
	}
}

func TestWhoseToolsAnAgentUses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		grant, extension string
		want             bool
	}{
		{"*", "notes", true},
		{"notes/*", "notes", true},
		{"notes/add", "notes", true},
		{"notes/add", "note", false},
		{"not*", "notes", true},
		{"core/*", "notes", false},
	}
	for _, test := range tests {
		s := &directory.Snapshot{
			Agents: []directory.Agent{{ID: "a", Spec: &extensionv1.AgentSpec{UsesTools: []string{test.grant}}}},
		}
		if got := s.UsesToolsOf("a", test.extension); got != test.want {
			t.Errorf("%s grants tools of %s: %v", test.grant, test.extension, got)
		}
	}
}

func TestReadinessOfAChannel(t *testing.T) {
	t.Parallel()
	tests := []struct {
		state      string
		readiness  extensionv1.Readiness_State
		ready, set bool
		status     string
	}{
		{contract.StateActive, extensionv1.Readiness_STATE_READY, true, true, "ready"},
		{contract.StateActive, extensionv1.Readiness_STATE_DEGRADED, false, true, "degraded"},
		{contract.StateActive, extensionv1.Readiness_STATE_OFFLINE, false, true, "offline"},
		{contract.StateActive, extensionv1.Readiness_STATE_UNCONFIGURED, false, false, "unconfigured"},
		{contract.StateBackingOff, extensionv1.Readiness_STATE_READY, false, true, "backing_off"},
	}
	for _, test := range tests {
		c := &directory.Channel{State: test.state, Readiness: &extensionv1.Readiness{State: test.readiness}}
		if c.Ready() != test.ready || c.Configured() != test.set || c.Status() != test.status {
			t.Errorf("%s and %s: ready %v, configured %v, %q", test.state, test.readiness, c.Ready(), c.Configured(), c.Status())
		}
	}
}

func TestWhatIsKnownIsFoundByItsName(t *testing.T) {
	t.Parallel()
	s := &directory.Snapshot{
		Channels: []directory.Channel{{ID: "a"}, {ID: "b"}}, Agents: []directory.Agent{{ID: "a"}, {ID: "b"}},
		Tools: []directory.Tool{{Name: "a/x"}, {Name: "b/x"}}, Commands: []command.Slash{{Name: "a"}, {Name: "b"}},
		Models: []directory.Provider{{Extension: "a"}, {Extension: "b"}}, Settings: directory.Settings{EnabledAgents: []string{"b", "c"}},
	}
	if s.Channel("b").ID != "b" || s.Agent("b").ID != "b" || s.Tool("b/x").Name != "b/x" || s.Command("b").Name != "b" ||
		s.Provider("b").Extension != "b" {
		t.Error("something else is found")
	}
	if s.Channel("c") != nil || s.Agent("c") != nil || s.Tool("c/x") != nil || s.Command("c") != nil ||
		s.Provider("c") != nil {
		t.Error("something is found that is not there")
	}
	if s.Enabled("a") || !s.Enabled("b") || s.Enabled("c") {
		t.Error("who is not there or not named is enabled")
	}
}

func TestPreferredChannel(t *testing.T) {
	t.Parallel()
	ready := &extensionv1.Readiness{State: extensionv1.Readiness_STATE_READY}
	channels := []directory.Channel{
		{ID: "a", State: contract.StateActive},
		{ID: "b", State: contract.StateActive, Readiness: ready},
	}
	tests := []struct {
		channels []directory.Channel
		named    string
		want     string
	}{
		{channels, "a", "a"},
		{channels, "", "b"},
		{channels, "gone", "b"},
		{channels[:1], "", ""},
		{nil, "a", ""},
	}
	for _, test := range tests {
		s := &directory.Snapshot{Channels: test.channels, Settings: directory.Settings{DefaultChannel: test.named}}
		got := ""
		if c := s.PreferredChannel(""); c != nil {
			got = c.ID
		}
		if got != test.want {
			t.Errorf("with the default %q: %q, want %q", test.named, got, test.want)
		}
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &directory.Directory{}
		if d.Current().Location == nil {
			t.Error("the empty snapshot has no time zone")
		}
		good := func(s *directory.Snapshot) bool { return s.MaxTurns == 3 }
		var waiting sync.WaitGroup
		for range 10 {
			waiting.Go(func() {
				if s, ok := d.Await(t.Context(), good); !ok || s.MaxTurns != 3 {
					t.Errorf("got %+v, %v", s, ok)
				}
			})
		}
		for i := range 5 {
			d.Set(&directory.Snapshot{Settings: directory.Settings{MaxTurns: i}})
			synctest.Wait()
			if i == 3 {
				waiting.Wait()
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if s, ok := d.Await(ctx, good); ok || s.MaxTurns != 4 {
			t.Errorf("got %+v, %v", s, ok)
		}
	})
}
