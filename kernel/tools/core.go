package tools

import (
	"context"
	"encoding/json"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// coreTool is a tool of the kernel, which package coretool describes: either read,
// which has no effect, or run, which stores the result itself.
type coreTool struct {
	read func(context.Context, *Runner, *extensionv1.CallRequest) (any, error)
	run  func(context.Context, *running) (*extensionv1.CallResult, error)
}

// answer returns the result of a tool that only reads.
func (c coreTool) answer(ctx context.Context, r *Runner, q *extensionv1.CallRequest) (string, error) {
	v, err := c.read(ctx, r, q)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(v)
	return string(b), err
}

var core = map[string]coreTool{
	"core/list_channels":    {read: listChannels},
	"core/list_agents":      {read: listAgents},
	toChannel:               {run: send},
	"core/send_to_person":   {run: send},
	contract.ToolFindPerson: {read: findPerson},
	toAll:                   {run: send},
	"core/ask_user":         {run: askUser},
	contract.ToolFind:       {read: findTools},
	contract.ToolUse:        {read: useTool},
}

func listChannels(_ context.Context, r *Runner, _ *extensionv1.CallRequest) (any, error) {
	dir := r.Directory.Current()
	rows := []coretool.Channel{}
	for i := range dir.Channels {
		c := &dir.Channels[i]
		rows = append(rows, coretool.Channel{
			ID: c.ID, Name: c.Name, Readiness: c.Status(), Detail: c.Readiness.GetDetail(),
			MaxLength: c.MaxLength, Default: c.ID == dir.DefaultChannel,
		})
	}
	return map[string]any{"channels": rows}, nil
}

func listAgents(_ context.Context, r *Runner, _ *extensionv1.CallRequest) (any, error) {
	dir := r.Directory.Current()
	rows := []coretool.Agent{}
	for _, a := range dir.Agents {
		if dir.Enabled(a.ID) {
			up := a.State == contract.StateActive || directory.Transient(a.State)
			rows = append(rows, coretool.Agent{ID: a.ID, Name: a.Name, Description: a.Description, Delegate: up})
		}
	}
	return map[string]any{"agents": rows}, nil
}
