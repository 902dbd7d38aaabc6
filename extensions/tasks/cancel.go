package tasks

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// stop ends the work of a running task and of its children. The task itself ends
// with what its worker's session then says: if that has just said its last word,
// with that.
func (c *change) stop(task *Task, outcome, why string) error {
	if task.Stop != "" {
		return nil
	}
	if err := c.abandon(task); err != nil {
		return err
	}
	task.Stop = outcome
	c.write(taskKey(task.Root, task.Name), task)
	c.effect(sdk.Raw(&busv1.TurnCancel{Agent: task.Agent, Key: task.sessionKey(), Reason: why, Waiting: true}))
	return nil
}

// cancel ends a task for who may do that.
func (c *change) cancel(task *Task) error {
	switch task.State {
	case Finished:
		return fmt.Errorf("the task %q has finished already: %s", task.Name, task.Outcome)
	case Queued:
		return c.finish(task, Result{Outcome: Cancelled, Error: "it was cancelled before it began"})
	}
	return c.stop(task, Cancelled, "it was cancelled")
}

// find is a task that somebody names.
func (c *change) find(root, name string) (*Task, error) {
	task, err := read[Task](c, taskKey(root, strings.TrimSpace(name)))
	if err == nil && task == nil {
		err = fmt.Errorf("there is no task %q in this conversation: queue shows what there is", name)
	}
	return task, err
}

// owns says whether a task is one of an agent or of its children.
func (c *change) owns(me agent, task *Task) (bool, error) {
	for task != nil && task.RequesterID != main {
		if me.task == nil || task.RequesterID == me.id {
			return true, nil
		}
		above, err := read[Task](c, taskKey(me.root, task.Requester))
		if err != nil || above == nil || above.ID != task.RequesterID {
			return false, err
		}
		task = above
	}
	return me.task == nil, nil
}

// mine is a task that the caller may stop or remove.
func (t *tasks) mine(ctx context.Context, call sdk.ToolCall) (*change, *Task, error) {
	var args struct{ Name string }
	c, me, err := t.asked(ctx, call, &args)
	if err != nil {
		return nil, nil, err
	}
	task, err := c.find(me.root, args.Name)
	if err != nil {
		return nil, nil, err
	}
	if own, err := c.owns(me, task); err != nil || !own {
		return nil, nil, cmp.Or(err, fmt.Errorf("the task %q is not one of yours", task.Name))
	}
	return c, task, nil
}

type cancelled struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Text  string `json:"text"`
}

// taskCancel stops a task at once.
func (t *tasks) taskCancel(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	c, task, err := t.mine(ctx, call)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return c.cancelled(task)
}

func (c *change) cancelled(task *Task) (sdk.ToolResult, error) {
	if err := c.cancel(task); err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(cancelled{task.Name, "cancelled", "Cancelled " + task.Name + "; its result says what it had so far."}, c.effects()...)
}

// queueRemove takes a task out of a queue as if it had never been there.
func (t *tasks) queueRemove(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	c, task, err := t.mine(ctx, call)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if task.State != Queued {
		return sdk.ToolResult{}, fmt.Errorf("the task %q is %s and not in the queue any more: task_cancel stops one that runs", task.Name, task.State)
	}
	c.effect(sdk.Delete(queuedOf(task.Root, task.RequesterID) + task.Line))
	c.forgetTask(task)
	if _, err := c.clearInbox(task); err != nil {
		return sdk.ToolResult{}, err
	}
	c.poke(task.Root)
	return sdk.JSON(cancelled{task.Name, "removed", "Removed " + task.Name + " from the queue; it never ran."}, c.effects()...)
}
