package tools

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// findTools searches the tools that requests of the agent do not describe.
func findTools(_ context.Context, r *Runner, q *extensionv1.CallRequest) (any, error) {
	var args struct{ Query string }
	if err := json.Unmarshal(q.GetArguments(), &args); err != nil {
		return nil, err
	}
	if q.GetAgent() == "" {
		return nil, errors.New("find_tools searches the tools of an agent: only its turns can call it")
	}
	dir := r.Directory.Current()
	all := []coretool.Found{}
	for i := range dir.Tools {
		if t := &dir.Tools[i]; dir.MayUse(q.GetAgent(), t) && !dir.Offered(q.GetAgent(), t) {
			all = append(all, coretool.Found{Name: t.Name, Description: t.Tool.GetDescription(), Schema: t.Tool.GetSchema()})
		}
	}
	return map[string]any{"tools": coretool.Find(args.Query, all)}, nil
}

// useTool is replaced by the call that it names when it is stored; a call that runs
// here named none.
func useTool(context.Context, *Runner, *extensionv1.CallRequest) (any, error) {
	return nil, errors.New("use_tool calls another tool: give its name, as find_tools returns it, and its arguments")
}
