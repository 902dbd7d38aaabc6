package kernel

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
)

// A snapshot is made at each change of each extension. It costs a start and a
// stop more than all else if each compiles the schemas of all tools.
func TestASnapshotDoesNotCompileSchemasAgain(t *testing.T) {
	t.Parallel()
	lookup := &extensionv1.Tool{Name: "lookup", Description: "Looks it up.", Schema: []byte(`{"type":"object"}`)}
	k := &Kernel{
		plan:   planOf(t, Spec{ID: "memory", Provides: Provides{Tools: true}}),
		status: map[string]supervisor.Status{},
		described: map[string]offer{
			"memory": {tools: entries("memory", []*extensionv1.Tool{lookup})},
		},
	}
	first, second := k.snapshot(), k.snapshot()
	for _, name := range []string{"memory/lookup", "core/list_channels"} {
		a, b := toolOf(first, name), toolOf(second, name)
		if a == nil || b == nil || a.Schema == nil {
			t.Fatalf("%s is not there, or has no schema", name)
		}
		if a.Schema() != b.Schema() {
			t.Errorf("the schema of %s was compiled twice", name)
		}
	}
}

func toolOf(s *directory.Snapshot, name string) *directory.Tool {
	for i := range s.Tools {
		if s.Tools[i].Name == name {
			return &s.Tools[i]
		}
	}
	return nil
}

func planOf(t *testing.T, specs ...Spec) *plan {
	t.Helper()
	p, err := newPlan(specs, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
