package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/switchboard-run/switchboard/contract/coretool"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// CallOutsideTurn runs a tool of an extension for a person at the command line, who sees
// what the principal sees. Its effects are one commit of that extension. No row makes a repeat safe, so only a
// version conflict is retried. It waits for an extension that starts for the first
// time.
func (r *Runner) CallOutsideTurn(
	ctx context.Context, name string, raw json.RawMessage, of contract.Principal,
) (*extensionv1.CallResult, error) {
	_, t, extension := r.awaitTool(ctx, name)
	if t == nil || t.Extension == coretool.Extension {
		return nil, fmt.Errorf("%w: no tool %s: the extension %s is not running", contract.ErrNotFound, name, extension)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for conflicts := 0; ; conflicts++ {
		q := &extensionv1.CallRequest{Repeat: conflicts > 0, Person: of.Person, Principal: of.Proto()}
		result, err := r.callOutsideTurn(ctx, nil, t, raw, q, true)
		if !errors.Is(err, contract.ErrConflict) || conflicts >= maxConflicts {
			return result, err
		}
	}
}

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
		return nil, fmt.Errorf("%w: %s needs approval: call it in a turn, or by the effect call", contract.ErrDenied, name)
	case !t.Tool.GetReadOnly():
		return nil, fmt.Errorf("%w: %s is not read-only: call it in a turn, or by the effect call", contract.ErrInvalid, name)
	case t.Matches(a.Tools):
	case agent != "" && !dir.MayUse(agent, t) && !slices.Contains(dir.Agent(agent).Spec.GetContext(), name):
		return nil, fmt.Errorf("%w: the manifest of %q lacks \"uses_tools: [%s]\"", contract.ErrDenied, agent, name)
	case agent == "":
		return nil, fmt.Errorf("%w: the manifest of %q lacks \"permissions: {tools: [%s]}\"", contract.ErrDenied, a.ID, name)
	}
	return r.callOutsideTurn(ctx, l, t, raw, &extensionv1.CallRequest{Agent: agent}, false)
}

// callOutsideTurn runs a tool once for the holder of a lane, if there is one, and
// commits its effects if it may have any.
func (r *Runner) callOutsideTurn(
	ctx context.Context, l *bus.Lease, t *directory.Tool, raw []byte, q *extensionv1.CallRequest, effects bool,
) (*extensionv1.CallResult, error) {
	if bad := checkArguments(t, raw); bad != "" {
		return nil, fmt.Errorf("%w: %s", contract.ErrInvalid, bad)
	}
	if l != nil && l.Session != 0 {
		var in input
		if err := r.Bus.View(ctx, func(j journal.Reader) (err error) {
			in, err = readInput(j, l, l.Event)
			return err
		}); err != nil {
			return nil, err
		}
		r.describe(q, l, in)
	} else if l != nil && strings.HasPrefix(l.Event.GetTopic(), contract.TopicCommand) {
		var given contract.Command
		if err := json.Unmarshal(l.Event.GetPayload(), &given); err != nil {
			return nil, fmt.Errorf("%w: read the command %s: %w", contract.ErrInvalid, l.Event.GetId(), err)
		}
		q.Group, q.Person, q.Principal = given.Group, given.Principal.Person, given.Caller().Proto()
		q.Timezone = given.Timezone
	}
	q.Name, q.Arguments = t.Tool.GetName(), arguments(raw)
	if tool, isCore := core[t.Name]; isCore { // one that only reads
		content, err := tool.answer(ctx, r, q)
		return &extensionv1.CallResult{Content: content}, err
	}
	actor := r.Remote.Actor(t.Extension)
	if actor == nil {
		return nil, fmt.Errorf("%w: the extension %s is not running", contract.ErrUnavailable, t.Extension)
	}
	lease := r.Bus.LeaseCall(actor, &bus.Lease{For: contract.PrincipalOf(q.GetPrincipal())}, nil, 0)
	defer r.Bus.Release(lease)
	q.Lane = lease.Token
	q.Timezone = cmp.Or(q.GetTimezone(), r.Directory.Current().Location.String())
	result, err := r.Remote.CallTool(ctx, t.Extension, q)
	switch {
	case err != nil || len(result.GetEffects()) == 0:
		return result, err
	case !effects:
		return nil, fmt.Errorf("%w: %s is described as read-only, but has effects", contract.ErrInvalid, t.Name)
	}
	return result, r.Bus.DoAs(actor, lease, func(tx *bus.Tx) error {
		_, err := tx.Apply(result.GetEffects())
		return err
	})
}
