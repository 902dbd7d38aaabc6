package tasks

import (
	"context"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// topicEnded says which tasks ended with the approval of a person.
const topicEnded = ID + ".ended"

// revoked cancels the tasks of the conversations of a person who was revoked. The kernel
// has cancelled those that ran, whose output may come first.
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
				ended.Names = append(ended.Names, task.Name)
			}
			return nil
		}); err != nil {
			return nil, err
		}
		if err := c.cancelChildren(&Task{Root: root, ID: main, HasQueue: true}); err != nil {
			return nil, err
		}
	}
	if err := t.each(ctx, "", func(task *Task) error { // those given in groups
		if task.State == Finished || task.Principal.Person == "" || task.Principal.Person != person.Person {
			return nil
		}
		task, err := read[Task](c, taskKey(task.Root, task.Name))
		if err != nil || task == nil || task.ended() {
			return err
		}
		ended.Names = append(ended.Names, task.Name)
		return c.cancel(task)
	}); err != nil {
		return nil, err
	}
	if len(ended.Names) > 0 {
		c.effect(sdk.Publish(topicEnded, ended))
	}
	return c.effects(), nil
}
