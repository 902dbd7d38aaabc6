package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/session"
)

// delegateLook is how long a delegated call waits before it looks at its row by
// itself. What the other agent says wakes it at once.
const delegateLook = 10 * time.Minute

// errWorking says that a call has no result yet, because another agent still
// works for it. Who waits for it asks again.
var errWorking = errors.New("another agent still works for it")

var delegate = coreTool{
	description: &extensionv1.Tool{
		Name:        "delegate_task",
		Description: "Give another agent a task and wait for its result. It sees only the prompt.",
		Schema: []byte(`{"type":"object","properties":{"agent":{"type":"string"},` +
			`"prompt":{"type":"string","minLength":1}},"required":["agent","prompt"],"additionalProperties":false}`),
	},
	run: delegateTask,
}

// delegateTask has another agent work, and waits for what it says. The result is
// not this function's to make: the kernel stores it in the commit that ends the
// other agent's turn. So it is there once, whoever dies meanwhile.
//
// The wait is part of the turn's time, so that a person is answered in time
// whatever the other agent does, and a message of theirs does not end it.
func delegateTask(ctx context.Context, r *running) (*extensionv1.CallResult, error) {
	if r.call.State == journal.CallOpen {
		if refusal, err := r.delegate(ctx); err != nil {
			return nil, err
		} else if refusal != "" {
			return r.fail(refusal)
		}
	}
	look := time.NewTimer(delegateLook)
	defer look.Stop()
	select {
	case <-ctx.Done(): // it has ended, in one way or the other
	case <-look.C:
	}
	call, err := r.read(context.WithoutCancel(ctx), r.call.Session, journal.CallID(r.call.ID))
	switch {
	case errors.Is(err, contract.ErrNotFound):
		return nil, fmt.Errorf("%w: the session of the call was deleted", contract.ErrStale)
	case err != nil:
		return nil, err
	case call.State == journal.CallFinished || call.State == journal.CallClosed:
		return ended(call)
	}
	return nil, errWorking
}

// delegate begins the work, or says why it must not.
func (r *running) delegate(ctx context.Context) (refusal string, err error) {
	var args struct{ Agent, Prompt string }
	if err := json.Unmarshal(arguments(r.call.Arguments), &args); err != nil {
		return "", err
	}
	now := r.Directory.Current()
	if why := undelegable(now, args.Agent); why != "" {
		return why + " Nobody was asked.", nil
	}
	if strings.TrimSpace(args.Prompt) == "" {
		return "The prompt is empty. Nobody was asked.", nil
	}
	in, err := r.input(ctx, r.lease, r.event)
	if err != nil {
		return "", err
	}
	err = r.commit(func(tx *bus.Tx) error {
		return r.Sessions.Delegate(tx, r.call.ID, args.Agent, contract.AgentInput{Sender: r.lease.Agent, Text: args.Prompt, ReplyTo: in.ReplyTo})
	})
	if err == nil || errors.Is(err, contract.ErrStale) {
		return "", err
	}
	return "Nobody was asked: " + err.Error() + ".", nil
}

// undelegable says why an agent cannot be given a task; one that is about to be
// back can.
func undelegable(now *directory.Snapshot, id string) string {
	a := now.Agent(id)
	switch {
	case a == nil:
		return fmt.Sprintf("There is no agent %q. There are: %s.", id, strings.Join(delegable(now), ", "))
	case !now.Enabled(id):
		return fmt.Sprintf("The agent %q is not enabled. There are: %s.", id, strings.Join(delegable(now), ", "))
	case a.State != directory.StateActive && !directory.Coming(a.State):
		return fmt.Sprintf("The agent %q is not running: it is %s.", id, strings.ReplaceAll(a.State, "_", " "))
	}
	return ""
}

// delegable is the agents that can be given a task.
func delegable(now *directory.Snapshot) (ids []string) {
	for _, a := range now.Agents {
		if now.Enabled(a.ID) && undelegable(now, a.ID) == "" {
			ids = append(ids, a.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// begun says whether a call is one that another agent works for already: its
// grant was checked when that began.
func begun(c journal.Call) bool {
	return c.Name == session.DelegateTool && c.State == journal.CallRunning
}
