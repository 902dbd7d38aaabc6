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

// delegateLook is how often a delegated call reads its row. The end of the other
// agent's turn wakes it at once.
const delegateLook = 10 * time.Minute

// errWorking says that another agent still works for a call; its waiter joins it
// again.
var errWorking = errors.New("another agent still works for the call")

var delegate = coreTool{
	description: &extensionv1.Tool{
		Name:        "delegate_task",
		Description: "Give another agent a task and wait for its result. It sees only the prompt.",
		Schema: []byte(`{"type":"object","properties":{"agent":{"type":"string"},` +
			`"prompt":{"type":"string","minLength":1}},"required":["agent","prompt"],"additionalProperties":false}`),
	},
	run: delegateTask,
}

// delegateTask gives another agent a task, and waits for its result. The commit
// that ends the other agent's turn stores the result, so it is stored once over
// any crash.
//
// The wait counts as time of the turn, so that the user gets an answer in time; a
// message of the user does not interrupt it.
func delegateTask(ctx context.Context, r *running) (*extensionv1.CallResult, error) {
	if r.call.State == journal.CallOpen {
		if refusal, err := r.delegate(ctx); err != nil {
			return nil, err
		} else if refusal != "" {
			return r.fail(refusal)
		}
	}
	resolve := time.NewTimer(delegateLook)
	defer resolve.Stop()
	select {
	case <-ctx.Done(): // the call has ended
	case <-resolve.C:
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

// delegate starts the task, or says why it must not.
func (r *running) delegate(ctx context.Context) (refusal string, err error) {
	var args struct{ Agent, Prompt string }
	if err := json.Unmarshal(arguments(r.call.Arguments), &args); err != nil {
		return "", err
	}
	dir := r.Directory.Current()
	if why := cannotDelegate(dir, args.Agent); why != "" {
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

// cannotDelegate says why an agent cannot be given a task. One that is about to
// run can.
func cannotDelegate(dir *directory.Snapshot, id string) string {
	a := dir.Agent(id)
	switch {
	case a == nil:
		return fmt.Sprintf("There is no agent %q. There are: %s.", id, strings.Join(delegates(dir), ", "))
	case !dir.Enabled(id):
		return fmt.Sprintf("The agent %q is not enabled. There are: %s.", id, strings.Join(delegates(dir), ", "))
	case a.State != directory.StateActive && !directory.Transient(a.State):
		return fmt.Sprintf("The agent %q is not running: it is %s.", id, strings.ReplaceAll(a.State, "_", " "))
	}
	return ""
}

// delegates returns the agents that can be given a task.
func delegates(dir *directory.Snapshot) (ids []string) {
	for _, a := range dir.Agents {
		if dir.Enabled(a.ID) && cannotDelegate(dir, a.ID) == "" {
			ids = append(ids, a.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// delegated reports whether another agent already works for a call: its grant was
// checked when the task started.
func delegated(c journal.Call) bool {
	return c.Name == session.DelegateTool && c.State == journal.CallRunning
}
