package tools

import (
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract/schema"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// refuse returns why a call must not run, for the model; empty: it may run.
func refuse(dir *directory.Snapshot, agent string, t *directory.Tool, call journal.Call) string {
	if t == nil || !dir.MayUse(agent, t) {
		var names []string
		for _, g := range granted(dir, agent) {
			names = append(names, g.Name)
		}
		if t != nil {
			return fmt.Sprintf("The tool %s is not granted to this agent: its manifest lacks \"uses_tools: [%s]\". Granted: %s.",
				call.Name, call.Name, strings.Join(names, ", "))
		}
		if call.State == journal.CallRunning { // by an earlier version of its extension
			return unknownOutcome(call.Name)
		}
		return fmt.Sprintf("There is no tool %q. There are: %s.", call.Name, strings.Join(names, ", "))
	}
	return checkArguments(t, call.Arguments)
}

// checkArguments describes what is wrong with the arguments of a call, for the model;
// empty: nothing.
func checkArguments(t *directory.Tool, raw []byte) string {
	var s *schema.Schema
	if t.Schema != nil {
		s = t.Schema()
	}
	return s.CheckArguments(t.Name, arguments(raw))
}

// arguments returns an empty object for missing arguments.
func arguments(raw []byte) []byte {
	if len(strings.TrimSpace(string(raw))) == 0 {
		return []byte("{}")
	}
	return raw
}
