package tools

import (
	"encoding/json"
	"fmt"
	"strings"

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

// checkArguments returns the problems of the arguments of a call, for the model; empty:
// none.
func checkArguments(t *directory.Tool, raw []byte) string {
	var v any
	if err := json.Unmarshal(arguments(raw), &v); err != nil {
		return fmt.Sprintf("The arguments of %s are not valid JSON (%v). "+
			"Call it again with a JSON object that fits its schema.", t.Name, err)
	}
	if t.Schema == nil {
		return ""
	}
	problems := t.Schema().Check(v)
	if len(problems) == 0 {
		return ""
	}
	lines := make([]string, 0, maxProblems)
	for _, p := range problems[:min(len(problems), maxProblems)] {
		lines = append(lines, p.String())
	}
	return fmt.Sprintf("The arguments of %s do not fit its schema: %s. Call it again with arguments that do.",
		t.Name, strings.Join(lines, "; "))
}

// maxProblems is how many problems one refusal lists.
const maxProblems = 5

// arguments returns an empty object for missing arguments.
func arguments(raw []byte) []byte {
	if len(strings.TrimSpace(string(raw))) == 0 {
		return []byte("{}")
	}
	return raw
}
