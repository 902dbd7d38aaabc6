package tools

import (
	"context"
	"fmt"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
)

// Ask runs a read-only tool without recording the call; a repeat runs it again. An
// agent that holds a lane may ask the tools that its manifest lets it use, any
// other extension those that its manifest names under permissions.tools. An error
// that the tool reports is a result.
func (r *Runner) Ask(
	ctx context.Context, a *bus.Actor, l *bus.Lease, name string, raw []byte,
) (*extensionv1.CallResult, error) {
	dir := r.Directory.Current()
	t := dir.Tool(name)
	agent := ""
	if l != nil {
		agent = l.Agent
	}
	switch {
	case t == nil:
		return nil, fmt.Errorf("%w: no tool %q", contract.ErrNotFound, name)
	case dir.NeedsApproval(agent, t):
		return nil, fmt.Errorf("%w: %s needs approval: call it in a turn", contract.ErrDenied, name)
	case !t.Tool.GetReadOnly():
		return nil, fmt.Errorf("%w: %s is not read-only: it is run as a call of a turn", contract.ErrInvalid, name)
	case agent != "" && !dir.MayUse(agent, t) && !slices.Contains(dir.Agent(agent).Spec.GetContext(), name):
		return nil, fmt.Errorf("%w: the manifest of %q lacks \"uses_tools: [%s]\"", contract.ErrDenied, agent, name)
	case agent == "" && !slices.Contains(a.Tools, name):
		return nil, fmt.Errorf("%w: the manifest of %q lacks \"permissions: {tools: [%s]}\"", contract.ErrDenied, a.ID, name)
	}
	if bad := checkArguments(t, raw); bad != "" {
		return nil, fmt.Errorf("%w: %s", contract.ErrInvalid, bad)
	}
	if tool, isCore := core[name]; isCore {
		if tool.read == nil {
			return nil, fmt.Errorf("%w: %s is run as a call of a turn", contract.ErrInvalid, name)
		}
		content, err := tool.answer(ctx, r, l, raw)
		return &extensionv1.CallResult{Content: content}, err
	}
	request := &extensionv1.CallRequest{
		Name: t.Tool.GetName(), Arguments: arguments(raw), Agent: agent, Timezone: dir.Location.String(),
	}
	if l != nil && l.Session != 0 {
		if err := r.describe(ctx, l, l.Event, request); err != nil {
			return nil, err
		}
	}
	result, err := r.callOutsideTurn(ctx, t.Extension, request)
	if err == nil && len(result.GetEffects()) > 0 {
		err = fmt.Errorf("%w: %s is described as read-only, but has effects", contract.ErrInvalid, name)
	}
	return result, err
}
