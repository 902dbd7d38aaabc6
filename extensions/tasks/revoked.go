package tasks

import (
	"context"
	"errors"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// topicEnded says which tasks ended with the approval of a person.
const topicEnded = ID + ".ended"

// revoked cancels the tasks of the conversations of a person who was revoked. The kernel
// has cancelled those that ran, whose output may come first. The own ones of a person who
// was removed are deleted, when they have ended.
func (t *tasks) revoked(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	var person contract.PersonRevoked
	if err := e.Decode(&person); err != nil {
		return nil, err
	}
	c := t.change(ctx, e.ID)
	ended := contract.PersonEnded{Kind: "task"}
	for _, root := range person.Sessions {
		if err := t.each(ctx, root, func(task *Task) error {
			if task.State != Finished || task.Outcome == Cancelled && !task.FinishedAt.Before(e.CreatedAt) {
				ended.Names = append(ended.Names, task.nameForOwner())
			}
			return nil
		}); err != nil {
			return nil, err
		}
		if err := c.cancelChildren(&Task{Root: root, ID: main, HasQueue: true}); err != nil {
			return nil, err
		}
	}
	if err := t.each(ctx, "", func(task *Task) error { // also those given in groups
		forget := person.Deletes(task.Principal)
		if !person.SetUp(task.Principal) || task.State == Finished && !forget {
			return nil
		}
		task, err := read[Task](c, taskKey(task.Root, task.Name))
		switch {
		case err != nil || task == nil:
			return err
		case forget:
			c.forget(task)
		}
		if task.ended() {
			return nil
		}
		ended.Names = append(ended.Names, task.nameForOwner())
		return c.cancel(task)
	}); err != nil {
		return nil, err
	}
	// A task that finishes meanwhile conflicts with this change, so nothing comes later.
	for _, root := range person.Sessions {
		if _, err := t.k.Session(ctx, root); person.Removed && errors.Is(err, contract.ErrNotFound) {
			if err := t.sweepRoot(ctx, root, mailPrefixes); err != nil {
				return nil, err
			}
		}
	}
	if len(ended.Names) > 0 {
		c.effect(sdk.Publish(topicEnded, ended))
	}
	return c.effects(), nil
}

// forget deletes a task, now or when it ends. That of a call would begin again if it were
// gone before the call has ended: it is deleted with its conversation.
func (c *change) forget(task *Task) {
	if task.State == Finished {
		c.forgetTask(task)
		return
	}
	task.Dropped, task.Forget = true, task.Deliver != byCall
	c.write(taskKey(task.Root, task.Name), task)
}

// nameForOwner is a task's name, or its id if the task is a person's own.
func (t *Task) nameForOwner() string {
	if t.Principal.Own {
		return t.ID
	}
	return t.Name
}
