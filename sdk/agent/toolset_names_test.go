package agent

import (
	"fmt"
	"testing"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// The description of the search costs the same with any number of tools.
func TestNamesOfManyToolsAreCounted(t *testing.T) {
	t.Parallel()
	hidden := map[string]bool{}
	s := &toolset{}
	add := func(name string) {
		s.tools = append(s.tools, &extensionv1.Tool{Name: name})
		hidden[name] = true
	}
	add("core/send")
	for i := range 30 {
		add(fmt.Sprintf("mcp/files__read_%d", i))
	}
	add("mcp/web__open")
	if got, want := s.names(hidden), "core (1), mcp/files (30), mcp/web (1)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for i := range 60 {
		add(fmt.Sprintf("extension%d/tool", i))
	}
	if got := s.names(hidden); len(got) > maxNames {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
