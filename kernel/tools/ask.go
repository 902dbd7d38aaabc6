package tools

import (
	"context"
	"fmt"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
)

// Ask has a read-only tool answer outside of the history: nothing of it is
// recorded, and asking again asks again. An agent that holds a lane may ask what
// its manifest lets it use; any other extension what its manifest names under
// permissions.tools. What the tool says went wrong is a result.
func (r *Runner) Ask(ctx context.Context, a *bus.Actor, l *bus.Lease, name string, raw []byte) (*extensionv1.CallResult, error) {
	now := r.Directory.Current()
	t := now.Tool(name)
	agent := ""
	if l != nil {
		agent = l.Agent
	}
	switch {
	case t == nil:
		return nil, fmt.Errorf("%w: there is no tool %q now", contract.ErrNotFound, name)
	case now.NeedsApproval(agent, t):
		return nil, fmt.Errorf("%w: %s needs the approval of a person, and is run as a call of a turn only", contract.ErrDenied, name)
	case !t.Tool.GetReadOnly():
		return nil, fmt.Errorf("%w: %s is not read-only: it is run as a call of a turn", contract.ErrInvalid, name)
	case agent != "" && !now.MayUse(agent, t) && !slices.Contains(now.Agent(agent).Spec.GetContext(), name):
		return nil, fmt.Errorf("%w: the manifest of %q lacks \"uses_tools: [%s]\"", contract.ErrDenied, agent, name)
	case agent == "" && !slices.Contains(a.Tools, name):
		return nil, fmt.Errorf("%w: the manifest of %q lacks \"permissions: {tools: [%s]}\"", contract.ErrDenied, a.ID, name)
	}
	if bad := misfit(t, raw); bad != "" {
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
		Name: t.Tool.GetName(), Arguments: arguments(raw), Agent: agent, Timezone: now.Location.String(),
	}
	if l != nil && l.Session != 0 {
		if err := r.describe(ctx, l, l.Event, request); err != nil {
			return nil, err
		}
	}
	result, err := r.alone(ctx, t.Extension, request)
	if err == nil && len(result.GetEffects()) > 0 {
		err = fmt.Errorf("%w: %s says that it is read-only, and has effects", contract.ErrInvalid, name)
	}
	return result, err
}
