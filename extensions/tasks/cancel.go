package tasks

import (
	"cmp"
	"context"
	"strings"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// stopTask cancels the turns of a running task and of its children. The task
// finishes with the next output of its worker's session; a final output that
// was already on its way wins.
func (c *change) stopTask(task *Task, outcome, why string) error {
	if task.Stop != "" {
		return nil
	}
	if err := c.cancelChildren(task); err != nil {
		return err
	}
	task.Stop = outcome
	c.write(taskKey(task.Root, task.Name), task)
	c.effect(sdk.Raw(&busv1.TurnCancel{Agent: task.Agent, Key: task.sessionKey(), Reason: why, Waiting: true}))
	return nil
}

// cancel ends a task. The caller has checked that this is allowed.
func (c *change) cancel(task *Task) error {
	switch task.State {
	case Finished:
		return words.Errorf("task %q has already finished: %v", task.Name, task.Outcome)
	case Queued:
		return c.finish(task, Result{Outcome: Cancelled, Error: words.Sprintf("the task was cancelled before it started")})
	}
	return c.stopTask(task, Cancelled, words.Sprintf("the task was cancelled"))
}

// find returns the task with a name, or an error.
func (c *change) find(root, name string) (*Task, error) {
	task, err := read[Task](c, taskKey(root, strings.TrimSpace(name)))
	if err == nil && task == nil {
		err = words.Errorf("there is no task %q in this conversation: queue lists its tasks", name)
	}
	return task, err
}

// owns reports whether an agent, or one of its descendants, requested a task.
func (c *change) owns(me agent, task *Task) (bool, error) {
	for task != nil && task.RequesterID != main {
		if me.task == nil || task.RequesterID == me.id {
			return true, nil
		}
		parent, err := read[Task](c, taskKey(me.root, task.Requester))
		if err != nil || parent == nil || parent.ID != task.RequesterID {
			return false, err
		}
		task = parent
	}
	return me.task == nil, nil
}

// ownTask returns the named task if the caller may stop or remove it.
func (t *tasks) ownTask(ctx context.Context, call sdk.ToolCall) (*change, *Task, error) {
	var args struct{ Name string }
	c, me, err := t.beginCall(ctx, call, &args)
	if err != nil {
		return nil, nil, err
	}
	task, err := c.find(me.root, args.Name)
	if err != nil {
		return nil, nil, err
	}
	if own, err := c.owns(me, task); err != nil || !own {
		return nil, nil, cmp.Or(err, words.Errorf("task %q belongs to another agent", task.Name))
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
	c, task, err := t.ownTask(ctx, call)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return c.cancelled(task)
}

func (c *change) cancelled(task *Task) (sdk.ToolResult, error) {
	if err := c.cancel(task); err != nil {
		return sdk.ToolResult{}, err
	}
	text := words.Sprintf("Cancelled %s. Its result contains its output so far.", task.Name)
	return sdk.JSON(cancelled{task.Name, "cancelled", text}, c.effects()...)
}

// queueRemove deletes a queued task; it leaves no result.
func (t *tasks) queueRemove(ctx context.Context, call sdk.ToolCall) (sdk.ToolResult, error) {
	c, task, err := t.ownTask(ctx, call)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if task.State != Queued {
		return sdk.ToolResult{}, words.Errorf("task %q is %v and not in the queue: task_cancel stops a running task",
			task.Name, task.State)
	}
	c.effect(sdk.Delete(queuedOf(task.Root, task.RequesterID) + task.Seq))
	c.forgetTask(task)
	if _, err := c.clearInbox(task); err != nil {
		return sdk.ToolResult{}, err
	}
	c.notifyWaiters(task.Root)
	said := words.Sprintf("Removed %s from the queue.", task.Name)
	return sdk.JSON(cancelled{task.Name, "removed", said}, c.effects()...)
}
