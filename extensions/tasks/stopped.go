package tasks

import (
	"context"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// maxSaid is how many names of cancelled tasks a person is shown.
const maxSaid = 20

// stopped cancels the tasks of a conversation in which a person stopped everything, and
// says which. Many tasks need several commits, each of which says its part.
func (t *tasks) stopped(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	var at contract.ConversationStopped
	if err := e.Decode(&at); err != nil {
		return nil, err
	}
	for {
		c := t.change(ctx, e.ID)
		var all []string
		left := maxStopped
		for _, root := range at.Sessions {
			names, err := c.stopRoot(root, e.CreatedAt, &left)
			if err != nil {
				return nil, err
			}
			if len(names) == 0 {
				continue
			}
			all = append(all, names...)
			c.notifyWaiters(root)
			c.effect(sdk.Raw(&busv1.Input{
				Session: root, Kind: contract.InputRecord, Sender: ID, IfExists: true,
				Text: "The user stopped everything. These tasks were cancelled: " + words.List("", names, maxShown) + ".",
			}))
		}
		if n := len(all); n > 0 {
			c.effect(sdk.Publish(contract.TopicUserNotify, contract.UserNotify{
				Text: words.Count(at.Language, "Cancelled %d task: %s.", "Cancelled %d tasks: %s.", n, n,
					words.List(at.Language, all, maxSaid)),
				ReplyTo: at.Conversation,
			}))
		}
		if left > 0 {
			return c.effects(), nil
		}
		if err := c.commit(); err != nil {
			return nil, err
		}
	}
}

// maxStopped is how many tasks of main one commit cancels.
const maxStopped = 200

// stopRoot cancels the unfinished tasks that main gave before a time, at most left, with
// their children, and returns the names of all. Their results are not delivered. The
// task of a call of main has ended with the call.
func (c *change) stopRoot(root string, before time.Time, left *int) (names []string, err error) {
	why := words.Sprintf("the user stopped everything")
	begun := len(c.order)
	for _, prefix := range []string{queuedOf(root, main), workingOf(root, main)} {
		if err := c.scan(c.ctx, prefix, func(v sdk.Value) error {
			if *left == 0 {
				return errStopScan
			}
			var name string
			if err := v.Decode(&name); err != nil {
				return err
			}
			task, err := read[Task](c, taskKey(root, name))
			if err != nil || task == nil || task.ended() || task.Deliver == byCall || task.CreatedAt.After(before) {
				return err
			}
			*left--
			if task.State == Queued {
				return c.markFinished(task, &Result{Outcome: Cancelled, Error: why})
			}
			task.Dropped = true
			return c.stopTask(task, Cancelled, why)
		}); err != nil {
			return nil, err
		}
	}
	for _, key := range c.order[begun:] {
		if task, ok := c.rows[key].value.(*Task); ok && c.rows[key].written && task.ended() {
			names = append(names, task.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
